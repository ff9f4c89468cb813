import CRUDPluginHost

/// An event loop's links to the child of one backend. What finds them busy waits for whichever is idle first.
final class ChildLinks {
    private let backend: Backend
    // The loop holds its links and outlives them.
    private unowned let loop: ServiceLoop
    private var links: [ChildLink] = []
    private var waiting: [ReadBatch] = []

    init(to backend: Backend, of loop: ServiceLoop) {
        self.backend = backend
        self.loop = loop
    }

    /// Looks up what a batch asks for, as soon as a link is idle; false if a thread of the backend has to be asked.
    func submit(_ batch: ReadBatch) -> Bool {
        guard let link = links.first(where: { $0.isOpen && !$0.isBusy }) ?? makeLink() ?? links.first,
            link.admits(batch)
        else { return false }
        waiting.append(batch)
        if !link.isBusy { link.goOn() }
        return true
    }

    /// Nil where there are as many as there may be, or the backend has no child that can be asked.
    private func makeLink() -> ChildLink? {
        guard links.count < LookupChannel.perLoop,
            let link = backend.lookupChannel().flatMap({ ChildLink($0, of: self, loop: loop) })
        else { return nil }
        links.append(link)
        return link
    }

    /// What waits, for a link that is idle.
    func takeWaiting() -> [ReadBatch] {
        defer { waiting.removeAll() }
        return waiting
    }

    /// Has the backend's thread look up what waits.
    func handBack() {
        for batch in takeWaiting() { backend.submit(batch) }
    }

    /// A link has been closed.
    func remove(_ link: ChildLink) {
        links.removeAll { $0 === link }
        if links.isEmpty { handBack() }
    }

    /// What is being looked up.
    var lookups: [ChildLink.Lookup] { links.compactMap(\.lookup) }
}
