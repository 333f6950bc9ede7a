// The dialogs that aren't on the first screen, as one part.
export { ExportDialog } from './ExportDialog'
export { GraftDialog } from './GraftDialog'
export { HelpDialog } from './HelpDialog'
export { ImportDialog } from './ImportDialog'
export { PrintView } from './PrintView'
export { SettingsDialog } from './SettingsDialog'
export { SharesDialog } from './SharesDialog'
export { TagsDialog } from './TagsDialog'
