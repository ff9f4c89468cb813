import Synchronization

/// How much memory the searches of a process hold together for long records and for pages.
///
/// A search takes memory while it grows, as long as there is some. One that finds none gives back what it has, waits
/// for all that it may need, and begins again: no search that holds memory waits for more.
package final class SearchMemory: Sendable {
    /// The place of a search that waits.
    fileprivate final class Ticket: Sendable {
        let bytes: Int
        private let granted = Atomic(false)

        init(_ bytes: Int) {
            self.bytes = bytes
        }

        var isGranted: Bool { granted.load(ordering: .acquiring) }

        func grant() { granted.store(true, ordering: .releasing) }
    }

    private struct State {
        var free: Int
        /// Those that wait, the first one first.
        var tickets: [Ticket] = []

        mutating func serve() {
            while let first = tickets.first, first.bytes <= free {
                free -= first.bytes
                first.grant()
                tickets.removeFirst()
            }
        }
    }

    private let bytes: Int
    private let state: Mutex<State>

    /// - Parameter bytes: how much there is for all searches.
    package init(bytes: Int) {
        self.bytes = bytes
        state = Mutex(State(free: bytes))
    }

    /// Takes memory, unless there is too little, or others wait for it.
    fileprivate func take(_ bytes: Int) -> Bool {
        state.withLock { state in
            guard state.tickets.isEmpty, bytes <= state.free else { return false }
            state.free -= bytes
            return true
        }
    }

    fileprivate func give(_ bytes: Int) {
        state.withLock { state in
            state.free += bytes
            state.serve()
        }
    }

    /// Waits in line. Whoever needs more than there is gets all.
    fileprivate func queue(for bytes: Int) -> Ticket {
        let ticket = Ticket(min(bytes, self.bytes))
        state.withLock { state in
            state.tickets.append(ticket)
            state.serve()
        }
        return ticket
    }

    /// Leaves the line, or gives back what was granted.
    fileprivate func withdraw(_ ticket: Ticket) {
        state.withLock { state in
            if ticket.isGranted { state.free += ticket.bytes } else { state.tickets.removeAll { $0 === ticket } }
            state.serve()
        }
    }
}

/// What one search has taken of the memory for searches. One thread at a time uses it.
final class SearchMemoryShare {
    private let memory: SearchMemory?
    private var bytes = 0
    /// For all that the search may need.
    private var ticket: SearchMemory.Ticket?

    /// - Parameter memory: nil: as much as there is.
    init(of memory: SearchMemory?) {
        self.memory = memory
    }

    deinit { giveBack() }

    /// Whether the search waits for its turn.
    var isWaiting: Bool { ticket.map { !$0.isGranted } ?? false }

    /// Has the search hold so many bytes.
    ///
    /// - Returns: false where there is no memory.
    func hold(_ held: Int) -> Bool {
        guard let memory, ticket == nil, held != bytes else { return true }
        if held < bytes {
            memory.give(bytes - held)
        } else if !memory.take(held - bytes) {
            return false
        }
        bytes = held
        return true
    }

    /// Gives back what the search holds, and waits for all that it may need.
    func wait(for bytes: Int) {
        giveBack()
        ticket = memory?.queue(for: bytes)
    }

    /// Gives back what the search holds, or leaves the line.
    func giveBack() {
        if bytes > 0 { memory?.give(bytes) }
        bytes = 0
        if let ticket = ticket.take() { memory?.withdraw(ticket) }
    }
}
