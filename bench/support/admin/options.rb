# frozen_string_literal: true

require "etc"
require "support/command_line"

module Bench
  module Admin
    # The command line of bench/admin.
    class Options
      include CommandLine

      SECTIONS = %w[scrapes kills cost counts].freeze
      WHOLE = /\A[1-9]\d{0,5}\z/
      NUMBERS = {
        workers: "in scrapes", scrapes: "in a row, and as long without", interval: "seconds between two scrapes",
        kills: "of the admin process", rate: "requests a second meanwhile", seconds: "each measurement in cost",
        connections: "in cost", rounds: "of scrapes and of cost", requests: "in counts",
        duration: "seconds of these requests", reforks: "meanwhile", reloads: "meanwhile"
      }.freeze

      attr_reader :sections, :json, *NUMBERS.keys

      def initialize(arguments)
        @sections = SECTIONS
        @workers = 64
        @scrapes = 12
        @interval = 5
        @kills = 50
        @rate = 200
        @seconds = 10
        @connections = 16
        @rounds = 3
        @requests = 100_000
        @duration = 120
        @reforks = 10
        @reloads = 3
        read(arguments)
      end

      # With two CPUs, the server has the first one for itself and the client the second.
      def cores = Etc.nprocessors > 1 ? %w[0 1] : [nil, nil]

      private

      def program = "bench/admin"

      def parser = @parser ||= parser_of_sections(SECTIONS, NUMBERS, WHOLE)
    end
  end
end
