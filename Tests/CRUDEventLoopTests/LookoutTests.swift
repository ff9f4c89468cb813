import Testing

@testable import CRUDEventLoop

@Suite struct LookoutTests {
    /// On a busy machine a wait that ought to be short may take long: it is tried that often.
    private static let tries = 10_000

    /// A lookout that looks out the next time: its last wait was short.
    private static func promising() throws -> Lookout {
        for _ in 0..<tries {
            var lookout = Lookout()
            lookout.wait {
                nil
            } sleep: {
            }
            var copy = lookout
            var looks = 0
            copy.wait {
                looks += 1
            } sleep: {
            }
            if looks > 0 { return lookout }
        }
        throw NeverPromising()
    }

    private struct NeverPromising: Error {}

    private static func spend(_ duration: Duration) {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {}
    }

    /// Whether it looks before it sleeps, in a wait that takes some time.
    private static func looks(_ lookout: inout Lookout) -> Bool {
        var looks = 0
        lookout.wait {
            looks += 1
            return nil
        } sleep: {
            spend(Lookout.span)
        }
        return looks > 0
    }

    @Test func sleepsAtOnceBeforeAnythingHasCome() {
        var lookout = Lookout()
        #expect(!Self.looks(&lookout))
    }

    @Test func findsWhatComesWhileItLooks() throws {
        for _ in 0..<Self.tries {
            var lookout = try Self.promising()
            var looks = 0
            let found: Int = lookout.wait {
                looks += 1
                return looks < 3 ? nil : looks
            } sleep: {
                0
            }
            // Else the thread was held up for so long that it slept.
            if found == 3 { return }
        }
        Issue.record("what comes is never found")
    }

    @Test func sleepsAfterOneLookInVain() throws {
        var lookout = try Self.promising()
        let start = ContinuousClock.now
        var looks = 0
        let slept: Bool = lookout.wait {
            looks += 1
            return nil
        } sleep: {
            #expect(start.duration(to: .now) >= Lookout.span)
            return true
        }
        #expect(slept)
        #expect(looks > 0)
        #expect(!Self.looks(&lookout), "though it was woken at once, it had waited for long")
    }

    @Test func sleepsAtOnceAfterALongWait() throws {
        var lookout = try Self.promising()
        lookout.wait {
            Self.spend(Lookout.span)
        } sleep: {
        }
        #expect(!Self.looks(&lookout), "what was found came late")
        lookout = try Self.promising()
        #expect(Self.looks(&lookout))
        #expect(!Self.looks(&lookout))
    }
}
