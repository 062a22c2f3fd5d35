# frozen_string_literal: true

require "support/bundle"
require "support/fork_cost"
require "support/lab/apps"
require "support/lab/archive"
require "support/lab/report"
require "support/lab/run"
require "support/lab/turns"

module Bench
  module Lab
    # The program: runs the missing measurements, then reports on all of them.
    class Laboratory
      # @param options [Options]
      # @param run [#call, nil] gets a variant, perhaps with the keyword pause: of {Run}, and returns its figures
      def initialize(options, run: nil)
        @options = options
        @run = run || method(:figures)
        @archive = Archive.new(File.join(@options.results, "runs"))
      end

      # @return [Boolean] false if --check was given and failed
      def call
        measure_all unless @options.report_only?
        report = Report.new(@archive.runs)
        puts report
        report.write(@options.results)
        warn "wrote #{@options.results}/report.html"
        !@options.check? || report.passed?
      end

      # Measures what the archive does not have. A server that fails ends its own measurement, and no other.
      #
      # @return [void]
      def measure_all
        compile
        wanted = @options.variants.select { |variant| @options.again? || !@archive.include?(variant) }
        return wanted.each { |variant| measure(variant) } unless @options.together?

        wanted.chunk_while { |one, next_one| one.rivals?(next_one) }.each { |rivals| measure_together(rivals) }
      end

      private

      def measure_together(variants)
        seconds = @options.minutes && (@options.minutes * 60)
        Turns.new(seconds, seed: @options.seed + variants.first.round)
             .run(variants.map { |variant| ->(pause) { measure(variant, pause: pause) } })
      end

      def measure(variant, **options)
        warn "#{variant.id} ..."
        @archive.store(variant, @run.call(variant, **options))
      rescue Server::Failed, Run::Failed => e
        warn "#{variant.id}: #{e.message}"
      end

      def figures(variant, **options)
        { **surroundings, **Run.new(variant, @options, app: app(variant.app), **options).call }
      end

      def app(name)
        (@apps ||= {})[name] ||= Apps.build(name, methods: @options.methods, redmine: @options.redmine)
                                     .tap { |app| app.prepare(app.bundle) }
      end

      def surroundings = { ruby: RUBY_VERSION, fork_cost: (@fork_cost ||= ForkCost.measure).to_h }

      # Compiles the extension of another checkout; this one's is compiled already.
      def compile
        return if @options.pando_root == Bench::Servers::Pando::ROOT

        path = [File.dirname(Gem.ruby), ENV.fetch("PATH", "")].join(File::PATH_SEPARATOR)
        system({ "PATH" => path },
               File.join(@options.pando_root, "bin/compile")) || abort("the extension does not compile")
      end
    end
  end
end
