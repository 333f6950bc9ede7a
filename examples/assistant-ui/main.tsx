// A chat by assistant-ui's components over a Coppice server on the page's own
// origin: threads, branches, edits, regenerations and deletions.
import { ActionBarPrimitive, AssistantRuntimeProvider, BranchPickerPrimitive, ComposerPrimitive, MessagePrimitive, ThreadListItemPrimitive, ThreadListPrimitive, ThreadPrimitive, useAui } from '@assistant-ui/react'
import { useCoppiceRuntime } from '@coppice-chat/assistant-ui'
import { Coppice } from '@coppice-chat/client'
import { createRoot } from 'react-dom/client'

const key = new URLSearchParams(location.search).get('key')
const client = new Coppice(key ? { apiKey: key } : {})

function App() {
  const runtime = useCoppiceRuntime({
    client,
    ...(location.hash.length > 1 && { conversationId: location.hash.slice(1) }),
    onConversation: id => history.replaceState(null, '', id ? '#' + id : location.pathname + location.search),
  })
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <aside>
        <ThreadListPrimitive.Root>
          <ThreadListPrimitive.New>New chat</ThreadListPrimitive.New>
          <ThreadListPrimitive.Items components={{ ThreadListItem }} />
        </ThreadListPrimitive.Root>
      </aside>
      <main>
        <div className="messages">
          <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage, EditComposer }} />
        </div>
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input placeholder="Message" aria-label="Message" rows={1} />
          <ThreadPrimitive.If running={false}>
            <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          </ThreadPrimitive.If>
          <ThreadPrimitive.If running>
            <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
          </ThreadPrimitive.If>
        </ComposerPrimitive.Root>
      </main>
    </AssistantRuntimeProvider>
  )
}

const ThreadListItem = () => (
  <ThreadListItemPrimitive.Root className="item">
    <ThreadListItemPrimitive.Trigger>
      <ThreadListItemPrimitive.Title />
    </ThreadListItemPrimitive.Trigger>
    <ThreadListItemPrimitive.Delete aria-label="Delete chat">×</ThreadListItemPrimitive.Delete>
  </ThreadListItemPrimitive.Root>
)

const UserMessage = () => (
  <MessagePrimitive.Root className="user">
    <Text />
    <ActionBarPrimitive.Root className="actions">
      <Branches />
      <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>
      <Delete />
    </ActionBarPrimitive.Root>
  </MessagePrimitive.Root>
)

const AssistantMessage = () => (
  <MessagePrimitive.Root className="assistant">
    <Text />
    <ActionBarPrimitive.Root className="actions">
      <Branches />
      <ActionBarPrimitive.Reload>Regenerate</ActionBarPrimitive.Reload>
    </ActionBarPrimitive.Root>
  </MessagePrimitive.Root>
)

const EditComposer = () => (
  <ComposerPrimitive.Root className="edit">
    <ComposerPrimitive.Input aria-label="Edit" />
    <ComposerPrimitive.Send>Save</ComposerPrimitive.Send>
    <ComposerPrimitive.Cancel>Cancel</ComposerPrimitive.Cancel>
  </ComposerPrimitive.Root>
)

/** Delete prunes the message with all below it, on every branch. */
function Delete() {
  const aui = useAui()
  return <button onClick={() => void aui.message().delete()}>Delete</button>
}

const Text = () => (
  <div className="text">
    <MessagePrimitive.Parts />
  </div>
)

const Branches = () => (
  <BranchPickerPrimitive.Root hideWhenSingleBranch className="actions">
    <BranchPickerPrimitive.Previous aria-label="Previous version">‹</BranchPickerPrimitive.Previous>
    <span className="version">
      <BranchPickerPrimitive.Number /> of <BranchPickerPrimitive.Count />
    </span>
    <BranchPickerPrimitive.Next aria-label="Next version">›</BranchPickerPrimitive.Next>
  </BranchPickerPrimitive.Root>
)

createRoot(document.getElementById('root')!).render(<App />)
