# frozen_string_literal: true

require "support/bundle"
require "support/columns"
require "support/live/server"
require "tmpdir"

module Bench
  module Live
    # A part of bench/live. It has a title, `call`, `rows` for a table of two or more columns, `targets` with what must
    # hold, and `to_h` with all figures.
    class Section
      GEMFILE = File.expand_path("../../gems/live/Gemfile", __dir__)
      APPS = File.expand_path("../../apps", __dir__)
      KIB = 1024.0

      # @param options [Options]
      def initialize(options)
        @options = options
      end

      # @return [String] as on the command line
      def name = self.class.name[/\w+\z/].downcase

      def to_s = [title, Columns.new(head, rows)].join("\n")

      private

      # Runs a server for as long as the block runs.
      # @param cores [String, nil] the only CPUs that it may use
      def serve(app, config, workers:, environment: {}, cores: nil)
        Dir.mktmpdir("pando-bench") do |folder|
          server = Server.new(app: File.join(APPS, app), folder: folder, config: config, workers: workers,
                              environment: bundle.environment.merge(production, environment), cores: cores)
          server.run { yield server }
        end
      end

      def bundle = @bundle ||= Bundle.new("bench-live", GEMFILE, without: ["cable"]).prepare
      def production = { "RACK_ENV" => "production", "RAILS_ENV" => "production", "RUBY_YJIT_ENABLE" => "1" }
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      def progress(words) = warn("#{name}: #{words} ...")
    end
  end
end
