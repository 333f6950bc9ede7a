// The dialogs that aren't on the first screen, as one part.
import { Compare } from '../compare/Compare'
import { LabelDialog } from '../compare/LabelDialog'
import type { Dialog } from '../state/dialog'
import { BehindDialog } from './BehindDialog'
import { CompactDialog } from './CompactDialog'
import { ExportDialog } from './ExportDialog'
import { GraftDialog } from './GraftDialog'
import { HelpDialog } from './HelpDialog'
import { PrintView } from './PrintView'
import { SettingsDialog } from './SettingsDialog'
import { SharesDialog } from './SharesDialog'
import { TagsDialog } from './TagsDialog'

export { Differences } from './Differences'
export { ImportDialog } from './ImportDialog'

export function MoreDialog({ dialog: d }: { dialog: Dialog }) {
  switch (d.kind) {
    case 'behind': return <BehindDialog behind={d} />
    case 'graft': return <GraftDialog graft={d} />
    case 'compact': return <CompactDialog again={d.again} />
    case 'help': return <HelpDialog />
    case 'settings': return <SettingsDialog />
    case 'tags': return <TagsDialog id={d.conversation} />
    case 'export': return <ExportDialog conversation={d.conversation} head={d.head} />
    case 'print': return <PrintView conversation={d.conversation} head={d.head} />
    case 'compare': return <Compare of={d.of} />
    case 'label': return <LabelDialog message={d.message} />
    case 'shares': return <SharesDialog conversation={d.conversation} head={d.head} />
    default: return null
  }
}
