import CRUDThreads
import Synchronization

/// Asks disks what storage takes. A disk may hang, so each path is asked on a thread of its own, never on two at once,
/// and nobody waits for it longer than a second.
final class Disks: Sendable {
    private static let timeout = Duration.seconds(1)
    /// How many threads may hang at the same time.
    private static let maximumThreads = 64

    /// The paths that are being asked.
    private let asked = Mutex<Set<String>>([])

    /// - Returns: by path, without those that do not reply in time.
    func usage(of paths: [String]) -> [String: DiskUsage] {
        let deadline = ContinuousClock.now + Self.timeout
        let replies = Set(paths).compactMap { path in ask(path, until: deadline).map { (path, $0) } }
        var found: [String: DiskUsage] = [:]
        for (path, reply) in replies { found[path] = reply.wait(atMost: deadline - .now) }
        return found
    }

    private func ask(_ path: String, until deadline: ContinuousClock.Instant) -> OneShot<DiskUsage>? {
        let isFree = asked.withLock { $0.count < Self.maximumThreads && $0.insert(path).inserted }
        guard isFree else { return nil }
        let reply = OneShot<DiskUsage>()
        let thread = try? Thread(named: "disk") { [self] in
            let usage = DiskUsage(of: path, until: deadline)
            asked.withLock { _ = $0.remove(path) }
            reply.resolve(usage)
        }
        guard let thread else {
            asked.withLock { _ = $0.remove(path) }
            return nil
        }
        thread.detach()
        return reply
    }
}
