# frozen_string_literal: true

require "support/command_line"

module Bench
  module Live
    # The command line of bench/live.
    class Options
      include CommandLine

      SECTIONS = %w[sockets cable streams sleeper].freeze
      WHOLE = /\A\d{1,6}\z/
      NUMBERS = {
        sockets: "WebSockets held in sockets", subscribers: "WebSockets held in cable", reforks: "of web meanwhile",
        reloads: "of everything meanwhile", drain: "seconds of a leaving worker; 0: without the keyword",
        streams: "of events, one event a second each", rate: "requests a second to web beside them",
        sleepers: "requests a second to the endpoint that sleeps", sleep: "seconds that it sleeps",
        others: "requests a second to the other one", seconds: "each measurement in streams and sleeper",
        rounds: "of these, in turn", hosts: "addresses of the clients, from 127.0.0.1 on"
      }.freeze

      attr_reader :sections, :json, *NUMBERS.keys

      def initialize(arguments)
        @sections = SECTIONS
        @sockets = 10_000
        @subscribers = 1000
        @reforks = 20
        @reloads = 3
        @drain = 600
        @streams = 500
        @rate = 200
        @sleepers = 50
        @sleep = 10
        @others = 50
        @seconds = 10
        @rounds = 3
        @hosts = 64
        read(arguments)
      end

      private

      def program = "bench/live"

      def parser = @parser ||= parser_of_sections(SECTIONS, NUMBERS, WHOLE)
    end
  end
end
