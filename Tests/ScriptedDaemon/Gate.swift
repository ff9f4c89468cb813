import CRUDTestSupport
import Dispatch

/// Makes a script wait for its test.
package struct Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    package func open() {
        semaphore.signal()
    }

    package func pass() throws {
        guard semaphore.wait(timeout: .now() + .seconds(120)) == .success else {
            throw Failure("the gate was not opened")
        }
    }
}
