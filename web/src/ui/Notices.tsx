import { dismiss, notices } from '../state/notices'
import { Icon } from './icons'

/** Notices are announced as they come; those about failures at once. */
export function Notices() {
  return (
    <div class="notices" role="log" aria-label="Notices">
      {notices.value.map(n => (
        <div key={n.id} class={`notice ${n.bad ? 'bad' : ''}`} role={n.bad ? 'alert' : 'status'}>
          <span>{n.text}</span>
          {n.action && (
            <button
              type="button" class="plain-button"
              onClick={() => {
                dismiss(n.id)
                n.action!.run()
              }}
            >
              {n.action.label}
            </button>
          )}
          <button type="button" class="quiet icon-only" aria-label="Dismiss" onClick={() => dismiss(n.id)}><Icon name="close" /></button>
        </div>
      ))}
    </div>
  )
}
