import CRUDModel
import CRUDStorage
import Logging

/// The switch of a collection to the place that it has been moved to: every loop **quiesces** the collection, its
/// backend is **drained**, and nothing writes it while the last records are copied. Its requests resume when the loops
/// serve what comes after this.
struct CollectionSwitch {
    private let move: Move
    private let service: Service
    private let loops: LoopGroup

    /// How long requests may wait for what is in flight before the switch is put off.
    private static let timeout = Duration.milliseconds(500)

    init(of move: Move, from service: Service, _ loops: LoopGroup) {
        self.move = move
        self.service = service
        self.loops = loops
    }

    /// - Returns: whether the collection is in its new place.
    /// - Throws: why that is not possible now.
    func execute() throws(CRUDError) -> Bool {
        let begin = ContinuousClock.now
        guard loops.quiesce(.one(move.name), within: Self.timeout) != nil else { return false }
        let isSwitched = try move.switchOver()
        let wait = begin.duration(to: .now)
        service.logger.info("the requests of collection \(quoted(move.name)) have waited \(wait)")
        return isSwitched
    }
}
