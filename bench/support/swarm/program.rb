# frozen_string_literal: true

require "fileutils"
require "json"
require "support/bundle"
require "support/lab/apps"
require "support/packages"
require "support/swarm/report"
require "support/swarm/run"

module Bench
  module Swarm
    # Runs the missing measurements, then reports on all of them.
    class Program
      GEMFILE = File.expand_path("../../gems/swarm/Gemfile", __dir__)

      def initialize(options)
        @options = options
      end

      # @return [Boolean] false if --check was given and failed
      def call
        measure_all unless @options.report_only?
        report = Report.new(results)
        puts "#{@options.nodes} nodes of #{@options.threads} threads, #{@options.jobs} jobs each, Ruby #{RUBY_VERSION}",
             "", report
        !@options.check? || report.kept?
      end

      private

      def measure_all
        FileUtils.mkdir_p(@options.results)
        Packages.executable("redis-server", "redis-server")
        bundle = Bundle.new("swarm", GEMFILE).prepare
        app = Lab::Apps.build("rails")
        app.prepare(bundle)
        @options.servers.each do |name|
          measure(name, app, bundle) if @options.again? || !File.exist?(file(name))
        end
      end

      def measure(name, app, bundle)
        warn "#{@options.id(name)} ..."
        figures = Run.new(name, @options, app: app, bundle: bundle).call
        File.write(file(name), JSON.generate({ ruby: RUBY_VERSION, settings: @options.settings, **figures }))
      end

      def results
        there = @options.servers.select { |name| File.exist?(file(name)) }
        there.to_h { |name| [name, JSON.parse(File.read(file(name)), symbolize_names: true)] }
      end

      def file(name) = File.join(@options.results, "#{@options.id(name)}.json")
    end
  end
end
