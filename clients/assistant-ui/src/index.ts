/**
 * A runtime for assistant-ui's components over a Coppice server: branches,
 * edits, regenerations, deletions, the list of threads, and answers that go on
 * where they were when the page is loaded anew.
 *
 *     const runtime = useCoppiceRuntime({ client: new Coppice() })
 *     return <AssistantRuntimeProvider runtime={runtime}>…</AssistantRuntimeProvider>
 */
import { ExportedMessageRepository, useExternalStoreRuntime, type AppendMessage, type AssistantRuntime, type ThreadMessage } from '@assistant-ui/react'
import type { Coppice } from '@coppice-chat/client'
import { useEffect, useMemo, useRef, useSyncExternalStore } from 'react'
import { contentOf, toRepository } from './convert.js'
import { Threads, type Ask } from './store.js'

export type { Ask } from './store.js'

export interface RuntimeOptions {
  client: Coppice
  /** What each reply is asked for beside its message: `model`, `tools`, `instructions`, `recall` and so on. */
  ask?: Ask
  /** The conversation to begin with. Without it a new thread, which becomes a conversation with its first message. */
  conversationId?: string
  /** Called when another conversation is shown, undefined for a new thread, for the page's address. */
  onConversation?: (id: string | undefined) => void
  /** Called with a Problem, a ConnectionError or what a model failed with. They go to the console unless said. */
  onError?: (error: unknown) => void
}

/** useCoppiceRuntime gives a runtime, which lives as long as the component and the client. */
export function useCoppiceRuntime(options: RuntimeOptions): AssistantRuntime {
  const latest = useRef(options)
  latest.current = options
  const { client } = options
  const threads = useMemo(() => new Threads(client, () => latest.current.ask ?? {}, error => (latest.current.onError ?? console.error)(error)), [client])
  const state = useSyncExternalStore(threads.subscribe, threads.snapshot, threads.snapshot)

  /** Errors are told, and leave the chat as it was. */
  const told = async (done: Promise<void>) => {
    try {
      await done
    } catch (error) {
      ;(latest.current.onError ?? console.error)(error)
    }
  }
  useEffect(() => {
    void told(threads.list())
    void told(threads.open(latest.current.conversationId))
    return () => void threads.open(undefined)
  }, [threads])
  useEffect(() => latest.current.onConversation?.(state.threadId), [state.threadId])

  const repository = useMemo(() => {
    const { items, headId } = toRepository(state.nodes, state.headId)
    return ExportedMessageRepository.fromBranchableArray(items, { headId })
  }, [state.nodes, state.headId])
  const regular = useMemo(() => state.threads.map(t => ({ status: 'regular' as const, id: t.id, title: t.title || 'New chat' })), [state.threads])

  const send = (message: AppendMessage, parentId: string | null) => {
    const content = contentOf(message)
    if (message.role !== 'user') return told(threads.say(parentId, message.role, content))
    return told(threads.send(parentId, content))
  }
  return useExternalStoreRuntime<ThreadMessage>({
    messageRepository: repository,
    isRunning: state.running,
    isLoading: state.loading,
    setMessages: () => {}, // its presence lets branches be switched
    unstable_onBranchChange: ({ headId }) => void told(threads.show(headId)),
    onNew: message => send(message, message.parentId === null ? null : threads.end(message.parentId)),
    onEdit: message => send(message, state.nodes.get(message.sourceId ?? '')?.parentId ?? null),
    onReload: (parentId, { sourceId }) => {
      const head = (sourceId === null ? undefined : state.nodes.get(sourceId)?.parentId) ?? parentId
      return head === null ? Promise.resolve() : told(threads.regenerate(head))
    },
    onDelete: id => told(threads.prune(id)),
    onCancel: () => told(threads.stop()),
    onAddToolResult: ({ messageId, toolCallId, result }) => told(threads.result(messageId, toolCallId, result)),
    onRefetchThread: () => threads.load(),
    adapters: {
      threadList: {
        threadId: state.threadId,
        threads: regular,
        isLoading: state.loading,
        onSwitchToNewThread: () => told(threads.open(undefined)),
        onSwitchToThread: id => told(threads.open(id)),
        onRename: (id, title) => told(threads.rename(id, title)),
        onDelete: id => told(threads.delete(id)),
      },
    },
  })
}
