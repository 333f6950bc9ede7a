// How far the database was after what this page wrote, or was told of. A server that
// reads from a replica then shows as much, whichever of several servers answers.

/** The name of the header that has them. */
export const header = 'Coppice-Position'

const most = 16

let all: string[] = []

/** held gives those that no later one stands for. */
export const held = (): readonly string[] => all

/** heard keeps one, in place of those that were held when its request was sent, or that came before it in its stream. */
export function heard(position: string | null | undefined, before: readonly string[]) {
  if (position) all = [...all.filter(p => !before.includes(p)), position].slice(-most)
}

/** forget drops all of them: they are of one tenant. */
export function forget() {
  all = []
}
