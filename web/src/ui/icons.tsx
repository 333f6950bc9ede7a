// Icons, drawn on a grid of 16 with one stroke.
const paths = {
  plus: 'M8 3v10M3 8h10',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5 14 14',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  close: 'm4 4 8 8M12 4l-8 8',
  left: 'm9.5 4-4 4 4 4',
  right: 'm6.5 4 4 4-4 4',
  unfold: 'm5 6.5 3 3 3-3',
  down: 'M8 3v10M4 9l4 4 4-4',
  send: 'M8 13V3M4 7l4-4 4 4',
  stop: 'M5 5h6v6H5z',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  map: 'M8 5.5v2M8 7.5c0 2-4 1.5-4 4M8 7.5c0 2 4 1.5 4 4M8 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM4 14a1.2 1.2 0 1 0 0-2.4A1.2 1.2 0 0 0 4 14ZM12 14a1.2 1.2 0 1 0 0-2.4A1.2 1.2 0 0 0 12 14Z',
  context: 'M2.5 5 8 2.2 13.5 5 8 7.8zM2.5 8 8 10.8 13.5 8M2.5 11 8 13.8l5.5-2.8',
  import: 'M8 2.5v7M5 7l3 3 3-3M2.5 10.5v3h11v-3',
  export: 'M8 10V2.5M5 5.5l3-3 3 3M2.5 10.5v3h11v-3',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5Z',
  auto: 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 2.5v11M8 5h4.6M8 8h5.5M8 11h4.6',
  help: 'M6 6a2 2 0 1 1 2.8 1.8c-.5.3-.8.7-.8 1.4M8 11.8h.01M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13Z',
  zoomIn: 'M8 4v8M4 8h8',
  zoomOut: 'M4 8h8',
  full: 'M6.5 9.5l-4 4M2.5 10v3.5H6M9.5 6.5l4-4M10 2.5h3.5V6',
  fit: 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10',
  good: 'M5 7.5v6H2.5v-6H5Zm0 .5 3-5.7c1.3 0 1.9.9 1.6 2.1L9 6.7h3.4c.9 0 1.4.7 1.2 1.5l-1.1 4.2c-.2.7-.7 1.1-1.4 1.1H5',
  bad: 'M5 8.5v-6H2.5v6H5ZM5 8l3 5.7c1.3 0 1.9-.9 1.6-2.1L9 9.3h3.4c.9 0 1.4-.7 1.2-1.5l-1.1-4.2c-.2-.7-.7-1.1-1.4-1.1H5',
  here: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1.5v3M8 11.5v3M1.5 8h3M11.5 8h3',
} as const

export function Icon({ name }: { name: keyof typeof paths }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={paths[name]} fill="none" stroke="currentColor" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  )
}
