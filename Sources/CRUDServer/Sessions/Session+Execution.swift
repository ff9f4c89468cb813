import CRUDConfiguration
import CRUDJSON
import CRUDModel
import CRUDWire

// How frames become calls.

extension Session {
    /// Executes a frame, or has it wait for earlier requests.
    ///
    /// - Parameters:
    ///   - waiting: the frame as it has waited, where it has; it may start now, whatever waits behind it.
    ///   - error: the reply where it is not executed any more; nil: it is.
    func execute(frame: Span<UInt8>, after waiting: WaitingRequest? = nil, failingWith error: CRUDError? = nil) {
        frame.withUnsafeBufferPointer { text in
            do throws(RequestError) {
                switch try sessions.parser.parse(frame) {
                case .array(let elements): try start(elements, of: text)
                case .request(let request):
                    if waiting == nil { state.requestCount &+= 1 }
                    let call = Call(
                        session: self, array: nil, text: text, request: request,
                        arrival: waiting?.arrival ?? loop.now, deadline: waiting?.deadline ?? loop.deadline,
                        chargedBytes: text.count,
                        hasWaited: waiting != nil, operations: waiting?.wait.operations)
                    if let error {
                        call.fail(error)
                    } else if loop.isDraining, waiting == nil {
                        call.fail(.draining)
                    } else if waiting == nil, !isAdmitted() {
                        refuse(call)
                    } else if case .mustWait(let wait) = sessions.handler.handle(call) {
                        let text = waiting?.text ?? Array(text)
                        enqueue(
                            WaitingRequest(
                                text: text, id: call.request.id, arrival: call.arrival, deadline: call.deadline, wait),
                            isFirst: waiting != nil)
                    }
                    sessions.parser.recycle(consume call.request)
                }
            } catch {
                // A reload may have lowered a limit while the frame has waited.
                if waiting == nil { state.requestCount &+= 1 }
                reply(with: error, to: text, in: nil, arrival: waiting?.arrival ?? loop.now)
            }
        }
    }

    /// Counts a request; false if the rate of its user does not admit it.
    @inline(__always)
    private func isAdmitted() -> Bool {
        // The member alone: a call of a method would copy the authority.
        guard let rate = state.authority.uncountedRate else { return true }
        return unsafe rate._withUnsafeGuaranteedRef { $0.admits(at: loop.nowNanoseconds) }
    }

    /// Replies to a request beyond the rate of its user.
    private func refuse(_ call: borrowing Call) {
        if loop.logsRequests {
            let method = call.request.traits.name.description
            trace("\(method) refused: more than the user's requests per second")
        }
        if let excess = state.authority.rate?.excess { call.fail(excess) }
    }

    private func reply(
        with error: RequestError, to text: UnsafeBufferPointer<UInt8>, in array: BatchArray?, arrival: Duration
    ) {
        if error.isNotification {
            count(error.method, RequestOutcome(error.error.code), arrival: arrival)
        } else if let id = error.id {
            fail(error.error, to: text.span.extracting(id.range), in: array, of: error.method, arrival: arrival)
        } else {
            fail(error.error, to: nil, in: array, of: error.method, arrival: arrival)
        }
    }

    // MARK: Batch arrays

    private func start(_ elements: [JSONSlice], of text: UnsafeBufferPointer<UInt8>) throws(RequestError) {
        let maximum = loop.limits.batch
        guard elements.count <= maximum else {
            throw RequestError(.limit("batch", maximum, "the batch array has more than \(maximum) elements"))
        }
        let array = BatchArray(
            text: Array(text), elements: elements, arrival: loop.now, deadline: loop.deadline, loop.limits)
        state.requestCount &+= UInt64(elements.count)
        if loop.isDraining { reject(array, .draining) }
        start(array)
    }

    /// Starts as many elements of an array as may start now.
    func startElements(of array: BatchArray) {
        array.text.withUnsafeBufferPointer { text in
            while !array.isStarted, !array.isBlocked {
                guard !hasHadItsShare else { return sessions.add(self, to: .postponed) }
                spend(1 + array.elements[array.next].count >> 10)
                guard startElement(of: array, text, rejectedWith: nil) else {
                    array.isBehind = array.inFlight == 0
                    return
                }
                array.next += 1
            }
        }
    }

    /// Replies to the elements of an array that have not been started with an error.
    func reject(_ array: BatchArray, _ error: CRUDError) {
        array.text.withUnsafeBufferPointer { text in
            while !array.isStarted {
                _ = startElement(of: array, text, rejectedWith: error)
                array.next += 1
            }
        }
    }

    /// Executes the next element of an array, or replies to it with an error; false if it has to wait.
    private func startElement(
        of array: BatchArray, _ text: UnsafeBufferPointer<UInt8>, rejectedWith error: CRUDError?
    ) -> Bool {
        let element = array.elements[array.next]
        do throws(RequestError) {
            guard case .request(let request) = try sessions.parser.parse(text.span, element: element)
            else { return true }
            let call = Call(
                session: self, array: array, text: text, request: request, arrival: array.arrival,
                deadline: array.deadline,
                // The array has been charged.
                chargedBytes: 0, hasWaited: false, operations: array.operations.take())
            var isStarted = true
            // An element that has waited is not counted again.
            let isNew = array.meteredCount <= array.next
            array.meteredCount = max(array.meteredCount, array.next + 1)
            if let error {
                call.fail(error)
            } else if isNew, !isAdmitted() {
                refuse(call)
            } else if case .mustWaitForArray(let operations) = sessions.handler.handle(call) {
                array.operations = operations
                isStarted = false
            }
            sessions.parser.recycle(consume call.request)
            return isStarted
        } catch {
            reply(with: error, to: text, in: array, arrival: array.arrival)
            return true
        }
    }
}

extension CRUDError {
    /// Of requests that come too late, and of searches that would take too long.
    static let draining = CRUDError(.unavailable, "the daemon is shutting down")

    static let overdue = CRUDError(
        .unavailable, "the request has waited too long for earlier ones; nothing was applied")

    static let withdrawn = CRUDError(
        .unavailable, "the request was cancelled before it had begun; nothing was applied")
}
