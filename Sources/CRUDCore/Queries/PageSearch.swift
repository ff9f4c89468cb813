import CRUDJSON
package import CRUDModel
package import CRUDPluginHost

/// `record.query`: finds the records of one page.
///
/// The backend is asked first, if it can look into its records. If it refuses this filter or sort, or takes too long
/// without finding anything, the collection is walked by id and the filter evaluated here. Without a sort the records
/// found are the page. With one, the walk keeps the sort values of as many records as the page may have, the first ones
/// so far, and the records are read when it is over.
///
/// It goes on slice by slice, each on a view of its own. A record that is there throughout keeps its place in the order
/// of the walk, so that it is met once, whatever is written meanwhile.
package final class PageSearch: SlicedReading, @unchecked Sendable {
    // @unchecked: used by one thread at a time, as the protocol says.

    private enum Stage {
        case asking, walking, sorting, reading
    }

    private let query: Query
    private let target: SearchTarget
    private let patience: Duration
    private var stage: Stage
    private var page: Page
    private var plan: QueryPlan
    /// What the answer has got to in the order of the query; nil: nowhere yet.
    private var position: SortPosition?
    /// Whether there may be further records.
    private var hasMore = false
    private var fault: CRUDError?
    private var values: SortValueReader
    private let walk: Walk
    private var first: FirstPositions
    /// The records that make the page, and the next of them to read.
    private var chosen: [SortPosition] = []
    private var next = 0
    /// When a page that does not need all records ends early.
    private var end: ContinuousClock.Instant?
    /// The result, as JSON text, when the search is done.
    package private(set) var result: [UInt8] = []

    /// - Parameters:
    ///   - maximumBytes: how long records and cursor may be together.
    ///   - patience: a page that does not need all records ends early after this.
    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    package init(
        _ query: Query, in target: SearchTarget, maximumBytes: Int, patience: Duration
    ) throws(CRUDError) {
        self.query = query
        self.target = target
        self.patience = patience
        let isSorted = !query.sort.keys.isEmpty
        page = Page(projection: query.projection, maximumBytes: maximumBytes)
        plan = QueryPlan(sort: isSorted ? .host : .id)
        position = query.position
        values = SortValueReader(query.sort)
        first = FirstPositions(query.sort, limit: query.limit, maximumBytes: maximumBytes)
        walk = try Walk(
            target, filter: query.filter, prefix: query.prefix,
            needsItems: isSorted || query.projection?.isEmpty != true,
            after: isSorted ? [] : query.position?.id ?? [])
        stage = target.canAsk ? .asking : isSorted ? .sorting : .walking
    }

    package func advance(with reader: BackendReader, for item: LongItem) throws(CRUDError) -> Bool {
        let isDone =
            switch stage {
            case .asking: try ask(reader, item)
            case .walking: try walk(reader)
            case .sorting: try sort(reader)
            case .reading: try read(reader)
            }
        if isDone { finish() }
        return isDone
    }

    // MARK: By the backend

    /// Has the plugin find records; false if the search is to go on.
    private func ask(_ reader: BackendReader, _ item: LongItem) throws(CRUDError) -> Bool {
        var request = PluginQuery()
        request.filter = query.filterText
        request.prefix = query.prefix
        request.sort = query.sortText
        request.after = position?.json ?? []
        // Whether there are more is worth looking for only where the next record is at hand.
        request.limit = query.limit - page.count + (query.filter == nil ? 1 : 0)
        request.withItems = !page.isWithoutItems || !query.sort.keys.isEmpty
        request.wantsPlan = query.explains
        let countBefore = page.count
        let end = ContinuousClock.now + PluginQuery.patience
        var pluginPlan = PluginPlan()
        let answer = try reader.query(
            request, in: target.stored, into: self, interrupt: { item.isAbandoned || ContinuousClock.now >= end },
            plan: &pluginPlan)
        if let fault { throw fault }
        plan.scanned += pluginPlan.scanned
        if answer == .complete || page.count > countBefore {
            plan.isPushedDown = true
            plan.index = pluginPlan.index
            if plan.sort == .host { plan.sort = .storage }
        }
        switch answer {
        case .complete: return true
        case .interrupted where page.count > countBefore: return false
        case .interrupted, .refused: goOnAlone()
        }
        return false
    }

    /// The rest is found without the backend's help.
    private func goOnAlone() {
        plan.isPushedDown = false
        plan.index = nil
        guard !query.sort.keys.isEmpty else {
            if let position { walk.goOn(behind: position.id) }
            stage = .walking
            return
        }
        plan.sort = .host
        first = FirstPositions(query.sort, limit: query.limit - page.count, maximumBytes: page.maximumBytes)
        stage = .sorting
    }

    // MARK: By a walk

    /// Walks on for a slice; false if the search is to go on.
    private func walk(_ reader: BackendReader) throws(CRUDError) -> Bool {
        let end = self.end ?? ContinuousClock.now + patience
        self.end = end
        let outcome = try walk.advance(with: reader) { [self] id, item, revision throws(CRUDError) in
            guard page.count < query.limit,
                try page.append(id: id, item: item, revision: revision, at: SortPosition(values: [], id: id))
            else { return .refused }
            return query.filter != nil && page.count == query.limit ? .last : .taken
        }
        if !walk.position.isEmpty { position = SortPosition(values: [], id: walk.position) }
        switch outcome {
        case .collectionIsOver: return true
        case .visitorIsFull: hasMore = true
        case .sliceIsOver: hasMore = ContinuousClock.now >= end && position != nil
        }
        return hasMore
    }

    /// Walks on for a slice, for the first records of the order.
    private func sort(_ reader: BackendReader) throws(CRUDError) -> Bool {
        let outcome = try walk.advance(with: reader) { [self] id, item, _ throws(CRUDError) in
            let place = try place(id: id, item)
            if let position, query.sort.compare(place, position) <= 0 { return .taken }
            first.insert(place)
            return .taken
        }
        guard case .collectionIsOver = outcome else { return false }
        chosen = first.sorted
        hasMore = first.hasMore
        stage = .reading
        return chosen.isEmpty
    }

    /// Reads the records that have been chosen. One that has changed since is left out: it belongs elsewhere now.
    private func read(_ reader: BackendReader) throws(CRUDError) -> Bool {
        var slice = Slice()
        while next < chosen.count {
            let wanted = chosen[next]
            let found = OneRecord()
            try reader.read(wanted.id.span, in: target.stored, into: found)
            if let record = found.record, let item = try text(of: record.item, id: wanted.id),
                try place(id: wanted.id, item.span) == wanted
            {
                let revision = record.revision
                let fits = try revision.withUnsafeBufferPointer { revision throws(CRUDError) in
                    try page.append(
                        id: wanted.id, item: item.span, revision: UnsafeRawBufferPointer(revision), at: wanted)
                }
                guard fits else {
                    hasMore = true
                    return true
                }
            }
            position = wanted
            next += 1
            if next < chosen.count, slice.isOver() { return false }
        }
        return true
    }

    /// The text of an item, if it matches.
    private func text(of stored: [UInt8], id: [UInt8]) throws(CRUDError) -> [UInt8]? {
        var text = stored
        if !target.codec.keepsText {
            text.removeAll()
            try target.codec.decode(stored: stored.span, into: &text, maximumBytes: target.maximumItemBytes)
        }
        return try walk.matches(text.span, id: id) ? text : nil
    }

    private func place(id: [UInt8], _ item: Span<UInt8>) throws(CRUDError) -> SortPosition {
        do throws(JSONSyntaxError) {
            return SortPosition(values: try values.values(of: item), id: id)
        } catch {
            throw .corruptItem(id: id)
        }
    }

    // MARK: The result

    private func finish() {
        plan.scanned += walk.scanned
        result = Array(#"{"records":["#.utf8)
        result += page.text
        result.append(UInt8(ascii: "]"))
        if hasMore, let position {
            result += Array(#","cursor":""#.utf8)
            result += query.cursor(behind: position, in: target.stored.name)
            result.append(UInt8(ascii: "\""))
        }
        if query.explains {
            result += Array(#","plan":"#.utf8)
            result += plan.json
        }
        result.append(UInt8(ascii: "}"))
    }
}

extension PageSearch: FoundRecordSink {
    package func receive(
        id: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer
    ) -> Bool {
        do throws(CRUDError) {
            // The buffer is valid during this call.
            let item = unsafe item.bindMemory(to: UInt8.self).span
            let place =
                query.sort.keys.isEmpty
                ? SortPosition(values: [], id: Array(id)) : try place(id: Array(id), item)
            guard page.count < query.limit,
                try page.append(id: place.id, item: item, revision: revision, at: place)
            else {
                hasMore = true
                return false
            }
            position = place
            hasMore = query.filter != nil && page.count == query.limit
            return !hasMore
        } catch {
            fault = error
            return false
        }
    }
}

extension PluginQuery {
    /// How long a backend may look for a record before the search goes on without it.
    static let patience = Duration.milliseconds(100)
}

/// Keeps the one record that a read finds.
private final class OneRecord: RecordSink {
    private(set) var record: (item: [UInt8], revision: [UInt8])?

    func receive(index: Int, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) -> Bool {
        record = (Array(item), Array(revision))
        return true
    }
}
