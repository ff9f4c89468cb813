import Foundation
import Testing

@testable import CRUDClient

@Suite struct RFC3339Tests {
    @Test(arguments: [
        (0.0, "2001-01-01T00:00:00.000000000Z"),
        (-978_307_200, "1970-01-01T00:00:00.000000000Z"),
        (-978_307_200.25, "1969-12-31T23:59:59.750000000Z"),
        (5_097_599, "2001-02-28T23:59:59.000000000Z"),
        (5_097_600, "2001-03-01T00:00:00.000000000Z"),
        (99_705_600, "2004-02-29T00:00:00.000000000Z"),
        (-63_113_904_000, "0001-01-01T00:00:00.000000000Z"),
        (252_423_993_599, "9999-12-31T23:59:59.000000000Z"),
    ])
    func writesAndReads(_ seconds: Double, _ text: String) {
        let date = Date(timeIntervalSinceReferenceDate: seconds)
        #expect(RFC3339.text(of: date) == text)
        #expect(RFC3339.date(from: text) == date)
    }

    @Test func bringsDatesBackEqual() {
        for _ in 0..<10_000 {
            // From 1900 to 2100, except the months around 2001, when a Date is more precise than a nanosecond.
            let seconds = Double.random(in: 1e7...3.2e9) * (Bool.random() ? 1 : -1)
            let date = Date(timeIntervalSinceReferenceDate: seconds)
            #expect(RFC3339.text(of: date).flatMap(RFC3339.date) == date, "\(seconds)")
        }
    }

    @Test func textsAreInTheOrderOfTime() {
        var dates = (0..<1000).map { _ in Date(timeIntervalSinceReferenceDate: 8e8 + Double.random(in: 0...3)) }
        dates += (0...3).map { Date(timeIntervalSinceReferenceDate: 8e8 + Double($0)) }
        let texts = dates.sorted().compactMap(RFC3339.text)
        #expect(texts.count == dates.count)
        #expect(texts == texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    }

    @Test func agreesWithFoundation() throws {
        // Foundation uses the Julian calendar before October 1582, RFC 3339 never does.
        for day in stride(from: -152_000, to: 2_900_000, by: 97) {
            let date = Date(timeIntervalSinceReferenceDate: Double(day) * 86_400 + 3661)
            #expect(RFC3339.text(of: date) == date.formatted(.iso8601).dropLast() + ".000000000Z")
        }
    }

    @Test(arguments: [
        ("2001-01-01T01:30:00+01:30", 0.0), ("2000-12-31T23:00:00-01:00", 0), ("2001-01-01t00:00:00z", 0),
        ("2001-01-01 00:00:00Z", 0), ("2000-12-31T23:59:60Z", 0), ("2001-01-01T00:00:00.5Z", 0.5),
        ("2001-01-01T00:00:00.000000000000001-00:00", 1e-15),
    ])
    func readsWhatOthersWrite(_ text: String, _ seconds: Double) {
        #expect(RFC3339.date(from: text) == Date(timeIntervalSinceReferenceDate: seconds))
    }

    @Test(arguments: [
        "", "2001", "2001-01-01", "2001-01-01T00:00:00", "2001-13-01T00:00:00Z", "2001-02-29T00:00:00Z",
        "2001-00-01T00:00:00Z", "2001-01-00T00:00:00Z", "2001-01-01T24:00:00Z", "2001-01-01T00:60:00Z",
        "2001-01-01T00:00:61Z", "2001-01-01T00:00:00.Z", "2001-01-01T00:00:00Zx", "2001-01-01T00:00:00+1:00",
        "2001-01-01T00:00:00+24:00", "+001-01-01T00:00:00Z", "2001-01-01T00:00:00,5Z", "1900-02-29T00:00:00Z",
    ])
    func refusesWhatIsNoDate(_ text: String) {
        #expect(RFC3339.date(from: text) == nil)
    }

    @Test func refusesYearsOfFiveDigits() {
        #expect(RFC3339.text(of: Date(timeIntervalSinceReferenceDate: 252_423_993_600)) == nil)
        #expect(RFC3339.text(of: Date(timeIntervalSinceReferenceDate: 252_423_993_599.999_999_999_9)) == nil)
        #expect(RFC3339.text(of: Date(timeIntervalSinceReferenceDate: -63_145_699_201)) == nil)
        #expect(RFC3339.text(of: Date(timeIntervalSinceReferenceDate: .nan)) == nil)
        #expect(RFC3339.text(of: Date(timeIntervalSinceReferenceDate: .infinity)) == nil)
        #expect(throws: EncodingError.self) {
            try ItemCoding.text(of: Date(timeIntervalSinceReferenceDate: 252_423_993_600))
        }
        #expect(throws: DecodingError.self) { try ItemCoding.item(as: Date.self, from: #""yesterday""#.utf8) }
    }
}
