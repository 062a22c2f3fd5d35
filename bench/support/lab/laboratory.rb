# frozen_string_literal: true

require "fileutils"
require "json"
require "support/bundle"
require "support/fork_cost"
require "support/lab/apps"
require "support/lab/report"
require "support/lab/run"
require "support/lab/turns"

module Bench
  module Lab
    # The program: runs the missing measurements, then reports on all of them.
    class Laboratory
      def initialize(options)
        @options = options
      end

      # @return [Boolean] false if --check was given and failed
      def call
        measure_all unless @options.report_only?
        report = Report.new(results)
        puts report
        report.write(@options.results)
        warn "wrote #{@options.results}/report.html"
        !@options.check? || report.passed?
      end

      private

      def measure_all
        FileUtils.mkdir_p(runs)
        compile
        wanted = @options.variants.select { |variant| @options.again? || !File.exist?(file(variant)) }
        return wanted.each { |variant| measure(variant) } unless @options.together?

        wanted.chunk_while { |one, next_one| one.rivals?(next_one) }.each { |rivals| measure_together(rivals) }
      end

      def measure_together(variants)
        seconds = @options.minutes && (@options.minutes * 60)
        Turns.new(seconds).run(variants.map { |variant| ->(pause) { measure(variant, pause: pause) } })
      end

      def measure(variant, **options)
        warn "#{variant.id} ..."
        figures = Run.new(variant, @options, app: app(variant.app), **options).call
        File.write(file(variant), JSON.generate({ **variant.to_h, label: variant.label, **surroundings, **figures }))
      rescue Server::Failed, Run::Failed => e
        warn "#{variant.id}: #{e.message}"
      end

      def app(name)
        (@apps ||= {})[name] ||= Apps.build(name, methods: @options.methods, redmine: @options.redmine)
                                     .tap { |app| app.prepare(app.bundle) }
      end

      def surroundings
        { ruby: RUBY_VERSION, workers: @options.workers, clients: @options.clients, seed: @options.seed,
          settings: @options.settings, fork_cost: fork_cost.to_h }
      end

      def fork_cost = @fork_cost ||= ForkCost.measure

      # Compiles the extension of another checkout; this one's is compiled already.
      def compile
        return if @options.pando_root == Bench::Servers::Pando::ROOT

        path = [File.dirname(Gem.ruby), ENV.fetch("PATH", "")].join(File::PATH_SEPARATOR)
        system({ "PATH" => path },
               File.join(@options.pando_root, "bin/compile")) || abort("the extension does not compile")
      end

      def results
        Dir[File.join(runs, "*.json")].map { |path| JSON.parse(File.read(path), symbolize_names: true) }
      end

      def runs = File.join(@options.results, "runs")
      def file(variant) = File.join(runs, "#{variant.id}.json")
    end
  end
end
