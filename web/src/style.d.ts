// Style sheets are imported for esbuild, which puts them beside the script.
declare module '*.css'
