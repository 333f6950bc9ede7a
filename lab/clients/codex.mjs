// Codex's command line, which sends its whole history at each step and asks for
// nothing to be stored.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { model, tenant } from './coppice.mjs'

const program = fileURLToPath(new URL('node_modules/@openai/codex/bin/codex.js', import.meta.url))

// codex runs one turn in a home of its own, and gives what it printed.
async function codex(t, home, ...args) {
  await writeFile(join(home, 'config.toml'), `model = "${model}"
model_provider = "coppice"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.coppice]
name = "coppice"
base_url = "${t.baseURL}"
wire_api = "responses"
env_key = "COPPICE_KEY"
`)
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, 'exec', '--skip-git-repo-check', ...args], { cwd: home, env: { ...process.env, CODEX_HOME: home, COPPICE_KEY: t.key }, stdio: ['ignore', 'pipe', 'pipe'] })
    let out = '', err = ''
    child.stdout.on('data', d => (out += d))
    child.stderr.on('data', d => (err += d))
    child.on('error', reject)
    child.on('close', code => (code === 0 ? resolve(out) : reject(new Error(`codex ended with ${code}\n${out}\n${err}`))))
  })
}

test('a turn, and another one', async () => {
  const t = tenant()
  const home = await mkdtemp(join(tmpdir(), 'codex-'))
  try {
    assert.match(await codex(t, home, 'Say hello [m:a]'), /Saw .*\[m:a\]/)
    assert.match(await codex(t, home, 'resume', '--last', 'And again [m:b]'), /Saw .*\[m:a\].*\[m:b\]/)
    assert.deepEqual(await t.everything(), [])
  } finally {
    await rm(home, { recursive: true, force: true })
  }
})
