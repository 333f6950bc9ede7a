// Runs the tests of the parts that need no browser: src/**/*.test.ts, bundled
// by esbuild and run by Node's own test runner.
import * as esbuild from 'esbuild'
import { spawnSync } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))
const outdir = await mkdtemp(join(tmpdir(), 'coppice-web-'))
try {
  const tests = (await readdir(join(root, 'src'), { recursive: true })).filter(name => name.endsWith('.test.ts'))
  if (tests.length === 0) throw new Error('there are no tests')
  await esbuild.build({
    absWorkingDir: root, entryPoints: tests.map(name => join('src', name)), outdir, bundle: true,
    platform: 'node', format: 'esm', outExtension: { '.js': '.mjs' }, sourcemap: 'inline', logLevel: 'warning',
  })
  const built = (await readdir(outdir, { recursive: true })).filter(name => name.endsWith('.mjs')).map(name => join(outdir, name))
  process.exitCode = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...built], { stdio: 'inherit' }).status ?? 1
} finally {
  await rm(outdir, { recursive: true, force: true })
}
