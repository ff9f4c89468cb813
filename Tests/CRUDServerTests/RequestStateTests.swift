import Testing

@testable import CRUDServer

/// Where a request in flight is: each state with each event.
@Suite struct RequestStateTests {
    private static let states: [RequestState] = [
        .executing, .awaitingRoom(bytes: 7), .encoding, .following, .replied, .ended,
    ]
    private static let events: [RequestState.Event] = [
        .lacksRoom(bytes: 9), .restarts, .encodes, .follows, .wakes(bytes: 5), .replies, .ends,
    ]

    /// What an event leads to, for each state; nil: it cannot happen.
    private static let table: [[RequestState?]] = [
        // lacks room, restarts, encodes, follows, wakes, replies, ends
        [.awaitingRoom(bytes: 9), nil, .encoding, .following, nil, .replied, nil],
        [nil, .executing, nil, nil, nil, .replied, nil],
        [.awaitingRoom(bytes: 9), nil, nil, nil, nil, .replied, nil],
        [nil, nil, nil, nil, .awaitingRoom(bytes: 5), .replied, nil],
        [nil, nil, nil, nil, nil, nil, .ended],
        [nil, nil, nil, nil, nil, nil, nil],
    ]

    @Test func everyEventInEveryState() {
        for (state, row) in zip(Self.states, Self.table) {
            for (event, next) in zip(Self.events, row) {
                #expect(state.after(event) == next, "\(event) while \(state)")
            }
        }
        #expect(Self.table.count == Self.states.count && Self.table.allSatisfy { $0.count == Self.events.count })
    }
}
