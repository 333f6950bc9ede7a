// Builds the page from src into dist. The same sources give the same bytes:
// esbuild and the libraries are pinned, and no name, date or path of the machine
// gets into the output. `--watch` rebuilds, unminified, on every change.
import * as esbuild from 'esbuild'
import { createHash } from 'node:crypto'
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'fflate' // and not Node's, whose bytes differ between versions and processors

const root = dirname(fileURLToPath(import.meta.url))
const dist = join(root, 'dist')
const watch = process.argv.includes('--watch')

/** options of the two bundles, the page's and the API reference's: each a script and the style sheet that it imports. */
const options = {
  absWorkingDir: root,
  entryPoints: { app: 'src/main.tsx', docs: 'src/docs/docs.ts' },
  outdir: 'dist/assets',
  entryNames: '[name]-[hash]',
  bundle: true,
  minify: !watch,
  sourcemap: watch ? 'inline' : false,
  format: 'esm',
  target: ['chrome120', 'firefox125', 'safari17'],
  charset: 'utf8',
  legalComments: 'none',
  metafile: true,
  write: false,
  logLevel: 'warning',
}

/**
 * write puts the bundles, the other files and the two pages that name them into dist. The renderer of the reference is
 * large and seldom asked for, so that it is stored compressed, as file.js.gz.
 */
async function write(result) {
  await rm(dist, { recursive: true, force: true })
  await mkdir(join(dist, 'assets'), { recursive: true })
  const names = {}
  for (const file of result.outputFiles) {
    const name = basename(file.path), bundle = name.split('-')[0]
    names[bundle + extname(name)] = name
    if (bundle === 'docs') await writeFile(file.path + '.gz', zip(file.contents))
    else await writeFile(file.path, file.contents)
  }
  names['icon.svg'] = await copy('src/icon.svg')
  names['demo.json'] = await copy('../testdata/demo.json')
  await writeFile(join(dist, 'assets', 'licenses.txt'), await licenses(result.metafile))
  for (const from of ['src/index.html', 'src/docs/docs.html']) {
    const page = await readFile(join(root, from), 'utf8')
    await writeFile(join(dist, basename(from)), page.replaceAll(/\{\{(.+?)\}\}/g, (_, name) => {
      if (!names[name]) throw new Error(`${from} names ${name}, which the build doesn't make`)
      return '/assets/' + names[name]
    }))
  }
}

/** zip compresses, to the same bytes at any time. */
const zip = content => gzipSync(content, { level: 9, mtime: 0 })

/** copy puts a file into dist under a name that holds a digest of its content. */
async function copy(from) {
  const content = await readFile(join(root, from))
  const digest = createHash('sha256').update(content).digest('hex').slice(0, 8)
  const name = basename(from).replace(/(\.\w+)$/, `-${digest}$1`)
  await writeFile(join(dist, 'assets', name), content)
  return name
}

/** alsoNamed are files that name the licences of what a package bundles in its turn. */
const alsoNamed = { 'swagger-ui-dist': 'swagger-ui-es-bundle.js.LICENSE.txt' }

/** licenses collects those of the packages whose code is in the bundle. */
async function licenses(metafile) {
  const packages = new Set()
  for (const input of Object.keys(metafile.inputs)) {
    const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)
    if (found) packages.add(found[1])
  }
  let text = 'Libraries in the page and in the API reference, each under its own licence.\n'
  for (const name of [...packages].sort()) {
    const folder = join(root, 'node_modules', name)
    const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    const files = (await readdir(folder)).sort()
    const found = files.filter(f => f === files.find(f => /^licen[cs]e/i.test(f)) || f === 'NOTICE' || f === alsoNamed[name])
    if (!found.length) throw new Error(`${name} has no licence file`)
    const texts = await Promise.all(found.map(f => readFile(join(folder, f), 'utf8')))
    const licence = texts.map(t => t.replaceAll('\r\n', '\n').trim()).join('\n\n')
    text += `\n${'='.repeat(72)}\n${name} ${version}\n${'='.repeat(72)}\n\n${licence}\n`
  }
  return text
}

/** report says what the page weighs, as browsers get it. */
async function report() {
  let total = 0
  for (const name of ['index.html', ...(await readdir(join(dist, 'assets'))).map(n => join('assets', n))]) {
    if (/licenses\.txt$|demo-|docs-/.test(name)) continue // not part of opening the page
    const size = zip(await readFile(join(dist, name))).length
    total += size
    console.log(`${String(size).padStart(8)}  ${name}`)
  }
  console.log(`${String(total).padStart(8)}  bytes gzipped in all`)
}

if (watch) {
  const context = await esbuild.context({
    ...options,
    plugins: [{ name: 'write', setup: build => build.onEnd(result => (result.errors.length ? undefined : write(result))) }],
  })
  await context.watch()
} else {
  await write(await esbuild.build(options))
  await report()
}
