import CRUDConfiguration
import CRUDCore
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDWire

// The methods that look for records by what is in them.

extension Dispatcher {
    /// `record.query`.
    func query(
        _ collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        guard let id = request.id, session.isListenedTo else { return }
        var query = try selection(text)
        if let sort = request[.sort] { query.sort = try SortOrder(json: text.extracting(sort.range)) }
        query.limit = try limit(text)
        query.projection = try projection(text)
        query.explains = request[.explain]?.kind == .true
        if let cursor = request[.cursor] { try query.goOn(from: cursor.decodedString(text), in: collection.name) }
        let search = try PageSearch(
            query, in: searchTarget(collection),
            maximumBytes: room(for: target) - ReplyWriter.sizeWithoutItem - id.count,
            patience: loop.limits.requestTimeout / 2)
        submit(search, collection, text, session, target)
    }

    /// `record.count`.
    func count(
        _ collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        guard request.id != nil, session.isListenedTo else { return }
        let query = try selection(text)
        // Without a filter no record needs to be looked into.
        guard query.filter != nil else { return try submitCount(query.prefix, collection, text, session, target) }
        let search = try CountSearch(query, in: searchTarget(collection))
        submit(search, collection, text, session, target)
    }

    /// `record.deleteMatching`.
    func deleteMatching(
        _ collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        let isSelective = request[.filter] != nil || request[.prefix] != nil
        let meansAll = request[.all]?.kind == .true
        guard isSelective || meansAll else {
            throw Parameter.filter.fault("or `prefix` is missing; `all: true` means every record")
        }
        guard !isSelective || !meansAll else { throw Parameter.all.fault("goes with neither `filter` nor `prefix`") }
        let matches = try MatchingSearch(selection(text), in: searchTarget(collection))
        let deletion = Deletion(of: matches, in: collection.stored) { [mailbox = loop.mailbox] in
            mailbox.post(.completed($0))
        }
        begin(.deletion(deletion), collection, text, session, target)
    }

    // MARK: Parameters

    /// What `filter` and `prefix` say.
    private func selection(_ text: Span<UInt8>) throws(CRUDError) -> Query {
        var query = Query()
        if let filter = request[.filter] { query.filter = try Filter(cql2JSON: text.extracting(filter.range)) }
        if let prefix = request[.prefix] { query.prefix = prefix.decodedString(text) }
        return query
    }

    private func limit(_ text: Span<UInt8>) throws(CRUDError) -> Int {
        let maximum = loop.limits.queryLimit
        guard let limit = request[.limit] else { return min(1000, maximum) }
        if text[limit.start] == UInt8(ascii: "-") || limit.integer(text) == 0 {
            throw Parameter.limit.fault("must be at least 1")
        }
        guard let count = limit.integer(text), count <= maximum else {
            throw CRUDError(
                .limitExceeded, "`limit` is over \(maximum)", details: .init(limit: "query_limit", maximum: maximum))
        }
        return count
    }

    private func searchTarget(_ collection: Collection) -> SearchTarget {
        SearchTarget(collection, maximumItemBytes: loop.limits.frameBytes)
    }

    // MARK: Work

    private func submit(
        _ reading: any SlicedReading, _ collection: Collection, _ text: Span<UInt8>, _ session: Session,
        _ target: ReplyTarget
    ) {
        let search = Search(reading, in: collection.stored) { [mailbox = loop.mailbox] in mailbox.post(.completed($0)) }
        begin(.search(search), collection, text, session, target)
    }

    private func begin(
        _ work: Submission.Work, _ collection: Collection, _ text: Span<UInt8>, _ session: Session,
        _ target: ReplyTarget
    ) {
        var context = RequestContext(
            session: session, collection: collection, traits: request.traits, target: target, id: nil,
            deadline: deadline, heldBytes: target.size(of: text))
        context.ownID = request.id.map { text.extracting($0.range).copy() }
        start(context)
        loop.append(work, for: context)
    }

    // MARK: Answers

    /// Answers a search that is done.
    func answer(_ context: RequestContext, with reading: any SlicedReading) {
        guard let id = context.ownID else { return }
        loop.reply.beginResult(id: id.span)
        if let search = reading as? PageSearch {
            let result = search.result
            loop.reply.append(result.span)
        } else if let search = reading as? CountSearch {
            writeMember("count", search.count)
        }
        loop.reply.end()
        deliver(to: context.target, of: context.session)
    }

    /// Answers a deletion that is done.
    func answer(_ context: RequestContext, with deletion: Deletion) {
        guard let id = context.ownID else { return }
        loop.reply.beginResult(id: id.span)
        writeMember("deleted", deletion.count)
        loop.reply.end()
        deliver(to: context.target, of: context.session)
    }

    /// Writes a result that is one number.
    func writeMember(_ name: String, _ number: Int) {
        var writer = JSONWriter()
        writer.object { $0.member(name, number) }
        loop.reply.append(writer.bytes.span)
    }
}
