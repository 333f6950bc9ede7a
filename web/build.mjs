// Builds the page from src into dist. The same sources give the same bytes:
// esbuild and the libraries are pinned, and no name, date or path of the machine
// gets into the output. `--watch` rebuilds, unminified, on every change.
import * as esbuild from 'esbuild'
import { createHash } from 'node:crypto'
import { mkdir, readFile, readdir, rm, watch as changes, writeFile } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import subset from 'subset-font'
import { gzipSync } from 'fflate' // and not Node's, whose bytes differ between versions and processors

const root = dirname(fileURLToPath(import.meta.url))
const dist = join(root, 'dist')
const watch = process.argv.includes('--watch')

/** woff2 leaves the other formats of its fonts out of KaTeX's style sheet: every browser that the page is for takes this one. */
const woff2 = {
  name: 'woff2',
  setup: build => build.onLoad({ filter: /katex\.min\.css$/ }, async ({ path }) => ({
    contents: (await readFile(path, 'utf8')).replaceAll(/,url\([^)]+\.(?:woff|ttf)\) format\("\w+"\)/g, ''), loader: 'css',
  })),
}

/** letters are those of the languages written in Latin letters that the font has, with their marks and the signs of prose. */
const letters = [[0x20, 0x17f], [0x2010, 0x203a], [0x20ac, 0x20ac], [0x2122, 0x2122], [0x2190, 0x2193], [0x2212, 0x2265]]
  .flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => String.fromCodePoint(from + i))).join('')

/** serif leaves of the font of answers what pages need: 34 of 52 KB. */
const serif = {
  name: 'serif',
  setup: build => build.onLoad({ filter: /literata[^/]*\.woff2$/ }, async ({ path }) => ({
    contents: await subset(await readFile(path), letters, { targetFormat: 'woff2', variationAxes: { wght: { min: 400, max: 700 } } }), loader: 'file',
  })),
}

const common = {
  absWorkingDir: root,
  outdir: 'dist/assets',
  entryNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  chunkNames: 'part-[name]-[hash]',
  plugins: [woff2, serif],
  loader: { '.woff2': 'file' },
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

/** builds are the page's, whose seldom needed parts are loaded when they are needed, the API reference's, and that of the frame that draws diagrams. */
const builds = [
  { ...common, entryPoints: { app: 'src/main.tsx', math: 'src/style/math.css' }, splitting: true },
  { ...common, entryPoints: { docs: 'src/docs/docs.ts', diagrams: 'src/diagrams/diagrams.ts' } },
]

/**
 * write puts the bundles, the other files and the two pages that name them into dist. What doesn't belong to the page's
 * first load is stored compressed, as file.gz.
 */
async function write(results) {
  const round = results.flatMap(r => circular(r.metafile.inputs))
  if (round.length) throw new Error(`these import one another in a circle, or lead to one: ${round.join(', ')}`)
  await rm(dist, { recursive: true, force: true })
  await mkdir(join(dist, 'assets'), { recursive: true })
  const names = {}, parts = results.flatMap(r => imported(r.metafile.outputs, 'src/main.tsx'))
  for (const file of results.flatMap(r => r.outputFiles)) {
    const name = basename(file.path), bundle = name.split('-')[0]
    names[bundle + extname(name)] = name
    if (bundle === 'diagrams') names['diagrams.html'] = await diagrams(file.text)
    else if (bundle === 'docs' || bundle === 'part' && !parts.includes(name)) await writeFile(file.path + '.gz', zip(file.contents))
    else await writeFile(file.path, file.contents)
  }
  names['preview.html'] = await copy('src/preview/preview.html')
  names['icon.svg'] = await copy('src/icon.svg')
  names['demo.json'] = await copy('../testdata/demo.json')
  await writeFile(join(dist, 'assets', 'licenses.txt'), await licenses(results.map(r => r.metafile)))
  for (const from of ['src/index.html', 'src/docs/docs.html']) {
    const page = await readFile(join(root, from), 'utf8')
    await writeFile(join(dist, basename(from)), page.replaceAll(/\{\{(.+?)\}\}/g, (_, name) => {
      if (name === "app's parts") return parts.map(part => `<link rel="modulepreload" href="/assets/${part}">`).join('\n')
      if (!names[name]) throw new Error(`${from} names ${name}, which the build doesn't make`)
      return '/assets/' + names[name]
    }))
  }
}

/** imported are the files that an entry's needs from the start: what it shares with parts that come later. */
function imported(outputs, entry) {
  const found = new Set(Object.keys(outputs).filter(name => outputs[name].entryPoint === entry))
  for (const name of found) for (const { path, kind } of outputs[name].imports) if (kind === 'import-statement') found.add(path)
  return [...found].slice(1).map(name => basename(name))
}

/** circular are the sources that are left when all are taken out whose imports are. */
function circular(inputs) {
  let left = Object.keys(inputs).filter(name => !name.startsWith('node_modules/'))
  for (let before; before !== left.length;) {
    before = left.length
    left = left.filter(name => inputs[name].imports.some(({ path }) => left.includes(path)))
  }
  return left
}

/** zip compresses, to the same bytes at any time. */
const zip = content => gzipSync(content, { level: 9, mtime: 0 })

/**
 * diagrams puts the frame that draws diagrams into dist: one file, because the frame may load nothing, whose policy
 * names the one script in it.
 */
async function diagrams(script) {
  const hash = createHash('sha256').update(script).digest('base64')
  const page = (await readFile(join(root, 'src/diagrams/diagrams.html'), 'utf8'))
    .replace('{{policy}}', `script-src 'sha256-${hash}'`).replace('{{diagrams.js}}', () => script)
  const name = `diagrams-${createHash('sha256').update(page).digest('hex').slice(0, 8)}.html`
  await writeFile(join(dist, 'assets', name + '.gz'), zip(Buffer.from(page)))
  return name
}

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
async function licenses(metafiles) {
  const packages = new Set()
  for (const input of metafiles.flatMap(m => Object.keys(m.inputs))) {
    const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)
    if (found) packages.add(found[1])
  }
  let text = 'Libraries in the page and in the API reference, each under its own licence.\n'
  for (const name of [...packages].sort()) {
    const folder = join(root, 'node_modules', name)
    const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    const files = (await readdir(folder)).sort()
    const found = files.filter(f => f === files.find(f => /^licen[cs]e/i.test(f)) || f === 'NOTICE' || f === alsoNamed[name])
    if (!found.length && !license) throw new Error(`${name} names no licence`)
    const texts = await Promise.all(found.map(f => readFile(join(folder, f), 'utf8')))
    if (!found.length) texts.push(`${license}, as its package.json says; it comes with no licence file.`)
    const licence = texts.map(t => t.replaceAll('\r\n', '\n').trim()).join('\n\n')
    text += `\n${'='.repeat(72)}\n${name} ${version}\n${'='.repeat(72)}\n\n${licence}\n`
  }
  return text
}

/** report says what the page weighs, as browsers get it. */
async function report() {
  let total = 0
  const page = await readFile(join(dist, 'index.html'), 'utf8')
  for (const name of ['index.html', ...(await readdir(join(dist, 'assets'))).map(n => join('assets', n))]) {
    if (/licenses\.txt$|demo-|docs-|diagrams-|preview-|math-|KaTeX|literata/.test(name)) continue // not part of opening the page
    if (name.endsWith('.gz')) continue
    const size = zip(await readFile(join(dist, name))).length
    total += size
    console.log(`${String(size).padStart(8)}  ${name}`)
  }
  console.log(`${String(total).padStart(8)}  bytes gzipped in all`)
}

if (watch) {
  const contexts = await Promise.all(builds.map(options => esbuild.context(options)))
  const build = async () => write(await Promise.all(contexts.map(c => c.rebuild())))
  await build()
  for (const folder of ['src', '../clients/ts/src']) void rebuild(folder)
  async function rebuild(folder) {
    for await (const _ of changes(join(root, folder), { recursive: true })) await build().catch(() => {}) // esbuild says what is wrong
  }
} else {
  await write(await Promise.all(builds.map(options => esbuild.build(options))))
  await report()
}
