# frozen_string_literal: true

require_relative "battery"
require_relative "rfc9112"

module Conformance
  # Compares what a server did with a connection's bytes to what RFC 9112 requires.
  class Judge
    Seen = Battery::Seen

    # @param most [Integer, nil] requests that the server serves on one connection, at most
    # @param echo [Boolean] whether its responses contain what it has read
    def initialize(most: nil, echo: true)
      @most = most
      @echo = echo
    end

    # @param input [String]
    # @param seen [Array<Seen>] from the server
    # @return [String, nil] what is wrong; nil: nothing
    def fault(input, seen)
      expected = RFC9112.read(input)
      expected = expected.first(@most) if @most
      seen = seen.dup
      expected.each do |one|
        wrong = one.is_a?(RFC9112::Refusal) ? refusal(one, seen.shift) : message(one, got = seen.shift)
        return wrong if wrong
        return rest(seen) if got.nil? || got.status != 200
      end
      rest(seen)
    end

    private

    def refusal(expected, got)
      "accepted what is wrong (#{expected.reason}): #{got.to_a}" if got && got.status == 200
    end

    def message(expected, got)
      return "no answer to #{expected.to_a}" unless got
      return read_wrongly(expected, got) if got.status == 200

      "refused with #{got.status}: #{expected.to_a}" if expected.lenient.empty?
    end

    def read_wrongly(expected, got)
      return unless @echo

      right = Seen.new(200, expected.verb, expected.target, expected.host.to_s, expected.body)
      "read #{got.to_a} instead of #{right.to_a}" unless got == right
    end

    def rest(seen)
      "answered what nobody asked: #{seen.map(&:to_a)}" unless seen.empty?
    end
  end
end
