# frozen_string_literal: true

require "support/http_case"

module Bench
  # The ratios that Pando must reach on hello world with one worker, and whether it does.
  class HTTPTargets
    # @!attribute case [Hash] attributes of an HTTPCase
    # @!attribute server [String]
    # @!attribute of_peer [Float] at most this many times the best peer's CPU
    # @!attribute of_nginx [Float] at most this many times nginx's
    Target = Struct.new(:keep, :connections, :server, :of_peer, :of_nginx, keyword_init: true)

    ALL = [
      Target.new(keep: true, connections: 16, server: "pando", of_peer: 0.9, of_nginx: 1.6),
      Target.new(keep: true, connections: 64, server: "pando", of_peer: 0.75, of_nginx: 1.6),
      Target.new(keep: false, connections: 16, server: "pando-direct", of_peer: 0.5, of_nginx: 1.2)
    ].freeze

    # @param report [HTTPReport]
    def initialize(report)
      @lines = ALL.flat_map { |target| judge(target, report) }
    end

    def kept? = @lines.none? { |line| line.start_with?("missed") }
    def to_a = @lines

    private

    def judge(target, report)
      kind = HTTPCase.new(workers: 1, connections: target.connections, keep: target.keep, large: false)
      cpu = report.cpu(kind, target.server)
      return [] unless cpu

      [line(target, kind, "the best peer's", cpu, report.best_peer(kind), target.of_peer),
       line(target, kind, "nginx's", cpu, report.cpu(kind, "nginx"), target.of_nginx)].compact
    end

    def line(target, kind, whose, cpu, base, limit)
      return unless base

      format("%<verdict>s: %<server>s, %<kind>s: %<ratio>.2f of %<whose>s CPU, at most %<limit>.2f",
             verdict: cpu / base <= limit ? "kept" : "missed", server: target.server, kind: kind.name,
             ratio: cpu / base, whose: whose, limit: limit)
    end
  end
end
