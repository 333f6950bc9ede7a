import type { components } from './openapi.js'

/** A Code says what went wrong. `unknown` is of an answer that isn't Coppice's: a proxy's, say. */
export type Code = components['schemas']['Problem']['code'] | 'unknown'

/** A Refusal is what a problem's answer holds. */
type Refusal = Omit<components['schemas']['Problem'], 'code'> & { code: Code }

/** A CoppiceError is any error that a call of the client ends with. */
export class CoppiceError extends Error {
  override name = 'CoppiceError'
}

/** A ConnectionError says that no whole answer came: the server was out of reach, or went away. */
export class ConnectionError extends CoppiceError {
  override name = 'ConnectionError'
}

/** A TimeoutError says that the answer took longer than the client's timeout. */
export class TimeoutError extends ConnectionError {
  override name = 'TimeoutError'
}

/** A Problem is an answer that is an error (RFC 9457). Its code is for programs, its detail for people. */
export class Problem extends CoppiceError {
  override name = 'Problem'
  /** The status of HTTP. */
  readonly status: number
  /** Stays the same from version to version, such as `message_not_found`. */
  readonly code: Code
  readonly detail: string
  /** The member or parameter that is wrong, where the request has one. */
  readonly field: string | undefined
  /** By which the server's log names the request. */
  readonly requestId: string | undefined
  /** Milliseconds after which the server takes the request again, where it says so. */
  readonly retryAfter: number | undefined

  constructor(problem: Refusal, headers?: Headers) {
    super(`${problem.status} ${problem.code}: ${problem.detail}`)
    this.status = problem.status
    this.code = problem.code
    this.detail = problem.detail
    this.field = problem.field
    this.requestId = headers?.get('X-Request-Id') ?? undefined
    const seconds = Number(headers?.get('Retry-After') ?? NaN)
    this.retryAfter = Number.isFinite(seconds) ? seconds * 1000 : undefined
  }
}

/** An InvalidRequest says what is wrong with the request, and how to fix it. */
export class InvalidRequest extends Problem {
  override name = 'InvalidRequest'
}

/** Unauthorized: the key is missing, unknown or revoked. */
export class Unauthorized extends Problem {
  override name = 'Unauthorized'
}

/** NotFound: there is none, or it is another tenant's. */
export class NotFound extends Problem {
  override name = 'NotFound'
}

/** A Conflict says that there is something else of this id, or that something changed meanwhile. */
export class Conflict extends Problem {
  override name = 'Conflict'
}

/** RateLimited: the key, or the address, sends more than the server takes. */
export class RateLimited extends Problem {
  override name = 'RateLimited'
}

/** A ServerError is the server's fault, or that of the database or the model behind it. */
export class ServerError extends Problem {
  override name = 'ServerError'
}

const byStatus: Record<number, typeof Problem> = {
  400: InvalidRequest, 401: Unauthorized, 403: Unauthorized, 404: NotFound, 409: Conflict, 413: InvalidRequest, 415: InvalidRequest, 422: InvalidRequest, 429: RateLimited,
}

/** problemOf makes the error that a problem's status asks for. */
export function problemOf(problem: Refusal, headers?: Headers): Problem {
  return new (byStatus[problem.status] ?? (problem.status >= 500 ? ServerError : Problem))(problem, headers)
}
