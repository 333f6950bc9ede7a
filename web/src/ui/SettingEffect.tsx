// What settings of contexts and compactions do to the branch that is shown, said before they are saved.
import type { Explanation, Settings } from '../api/types'
import { count, number } from '../text/format'

/** SettingEffect tells it of the own settings. Of a setting that was stored and is own no more, the server's value isn't known. */
export function SettingEffect({ told, own, stored }: { told: Explanation | null; own: Settings; stored: Settings }) {
  if (!told) return null
  if (Object.keys(stored).some(key => !(key in own))) {
    return <p class="notice-in settings-effect" role="status">A setting that you emptied is the server’s once you save. What it does to this branch shows here then.</p>
  }
  const s = { ...told.settings, ...own } as Required<Settings>
  const available = Math.max(1, s.max_context_tokens - s.reserved_tokens)
  const share = (ratio: number, most: number) => Math.min(Math.round(ratio * available), most)
  const trigger = share(s.trigger_ratio, s.trigger_cap_tokens)
  const keep = share(s.keep_ratio, s.keep_cap_tokens)
  const words = share(s.keep_user_ratio, s.keep_user_cap_tokens)
  const used = told.usage.context_tokens
  const automatic = s.compaction === 'auto' || s.compaction === 'tool'
  return (
    <div class="notice-in settings-effect" role="status">
      <p>
        This branch’s context has {number(used)} tokens. With these settings it may have {number(available)}
        {automatic
          ? used > trigger
            ? `, and is compacted with the next message, as it is past ${number(trigger)}.`
            : `, and is compacted when it passes about ${number(trigger)}: in ${number(trigger - used)} more${s.every_n_messages ? `, or after ${count(s.every_n_messages, 'message')}` : ''}.`
          : s.compaction === 'manual' ? ', and is compacted only when you ask for it.' : ', and is never compacted.'}
        {used > available && !automatic && ' What has no room is left out of what the model sees.'}
      </p>
      {s.compaction !== 'off' && (
        <p>
          About {number(keep)} tokens at its end, and {s.min_recent_messages === 1 ? 'the last message' : `the last ${number(s.min_recent_messages)} messages`} in any case, then stay word for word
          {words > 0 && `, and so do up to ${number(words)} tokens of your folded messages`}. The others become a summary of
          about {number(Math.max(1, Math.min(s.summary_target_tokens, Math.floor(available / 8))))} tokens, once they are {count(s.min_fold_messages, 'message')} and {number(s.min_fold_tokens)} tokens.
        </p>
      )}
    </div>
  )
}
