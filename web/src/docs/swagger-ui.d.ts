// Swagger UI comes without types. This is the part of its options that is used.
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  export default function SwaggerUI(options: {
    url: string
    dom_id: string
    deepLinking: boolean
    defaultModelsExpandDepth: number
    displayRequestDuration: boolean
    filter: boolean
    validatorUrl: null
  }): void
}
