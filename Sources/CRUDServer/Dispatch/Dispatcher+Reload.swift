import CRUDJSON
import CRUDModel
import CRUDWire

extension Dispatcher {
    /// `daemon.reload`: has it carried out elsewhere. In a batch array the elements behind it wait until that is done.
    func reload(_ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget) {
        loop.reload(
            from: session, to: target, force: request[.force]?.kind == .true,
            id: request.id.map { text.extracting($0.range).copy() }, heldBytes: target.size(of: text))
    }

    /// Answers a reload.
    func answer(_ reload: ReloadRequest, with outcome: Result<[String], CRUDError>) {
        guard let id = reload.id else { return }
        do throws(CRUDError) {
            var writer = JSONWriter()
            let changes = try outcome.get()
            writer.object { $0.member("changes", strings: changes) }
            loop.reply.beginResult(id: id.span)
            loop.reply.append(writer.bytes.span)
            loop.reply.end()
            try checkSize(for: reload.target)
        } catch {
            loop.reply.error(error, id: id.span)
        }
        deliver(to: reload.target, of: reload.session)
    }

    static let reloadOverdue = CRUDError(
        .outcomeUnknown, "the reload takes long; what comes of it will be in the daemon's log")
}
