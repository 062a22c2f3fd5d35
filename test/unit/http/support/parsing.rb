# frozen_string_literal: true

require "pando/http/environment"
require "pando/native"

module HTTPSupport
  # Parses a request in one piece, byte by byte, and split at every position, and requires that the results are the
  # same.
  module Parsing
    LIMITS = [4096, 512, 20].freeze

    # @return [Hash] what the request adds to the environment
    def accept(bytes, limits = LIMITS)
      verdict, env = parse(bytes, limits)

      assert_equal true, verdict, -> { @parser.reason }
      env
    end

    # @return [String] the reason of the refusal
    def refuse(status, bytes, limits = LIMITS)
      verdict, = parse(bytes, limits)

      assert_equal status, verdict, -> { "#{bytes[0, 200].inspect}: #{@parser.reason}" }
      @parser.reason
    end

    def parse(bytes, limits)
      verdict, env = parse_cut(bytes, [bytes.bytesize], limits)
      others = [(1..bytes.bytesize).to_a]
      others.concat((1...bytes.bytesize).map { |cut| [cut, bytes.bytesize] }) if bytes.bytesize < 500
      others.each { |cuts| assert_equal [verdict, env], parse_cut(bytes, cuts, limits) }
      [verdict, env]
    end

    private

    # Each call gets a new String, as if the buffer had moved.
    def parse_cut(bytes, cuts, limits)
      @parser = Pando::HTTP::Parser.new(*limits)
      verdict = nil
      cuts.each do |cut|
        verdict = @parser.run(bytes.byteslice(0, cut))
        break unless verdict.nil?
      end
      [verdict, verdict == true ? environment(bytes) : nil]
    end

    def environment(bytes)
      @parser.environment(Pando::HTTP::Environment::REQUEST, bytes, "192.0.2.9", "*").tap { |env| env.delete("REMOTE_ADDR") }
    end
  end
end
