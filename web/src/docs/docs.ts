// The API reference at /docs: Swagger UI over the server's own openapi.yaml. It
// asks no other host: no validator, no sample server, no font.
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js'
import 'swagger-ui-dist/swagger-ui.css'
import './docs.css'

const dark = matchMedia('(prefers-color-scheme: dark)')
const colour = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', colour)
colour()

SwaggerUI({
  url: '/openapi.yaml',
  dom_id: '#docs',
  deepLinking: true, // the address names the operation that is open
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  validatorUrl: null,
})
