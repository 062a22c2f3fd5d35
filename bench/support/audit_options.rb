# frozen_string_literal: true

require "support/command_line"

module Bench
  # The command line of bench/audit.
  class AuditOptions
    include CommandLine

    POSITIVE = /\A[1-9]\d{0,7}\z/
    NUMBERS = { descriptors: "in all", suspicious: "of them", objects: "live on the heap", rounds: "of each" }.freeze

    attr_reader :json, *NUMBERS.keys

    def initialize(arguments)
      @descriptors = 500
      @suspicious = 50
      @objects = 500_000
      @rounds = 15
      read(arguments)
    end

    private

    def program = "bench/audit"

    def parser
      OptionParser.new do |options|
        options.banner = "usage: bench/audit [options]"
        numbers_of(options, NUMBERS, POSITIVE)
        ending(options, "limit")
      end
    end
  end
end
