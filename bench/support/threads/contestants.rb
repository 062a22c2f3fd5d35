# frozen_string_literal: true

require "support/servers"

module Bench
  module Threads
    # The servers of bench/threads by their names on its command line: puma-N and pando-N have N threads in each worker,
    # pando-auto has `threads :auto`, and pando-base is another checkout, one from before threads maybe.
    module Contestants
      NAME = /\A(?:puma-(?:[1-9]\d?)|pando-(?:[1-9]\d?|auto|base))\z/

      # Pando with a number of threads.
      class Pando < Bench::Servers::Pando
        # @param threads [String, nil] nil: the default
        def initialize(threads:, **options)
          super(**options)
          @threads = threads
        end

        def label = @threads ? "Pando, #{@threads}" : "Pando, base"

        private

        def settings = super.merge("threads" => @threads == "auto" ? ":auto" : @threads).compact
      end

      # Puma with a number of threads.
      class Puma < Bench::Servers::Puma
        attr_reader :threads

        def initialize(threads:, **options)
          super(**options)
          @threads = threads
        end

        def label = "Puma, #{@threads}"
      end

      # @param name [String]
      # @param bundle [Bundle] with Puma
      # @param base [String, nil] path of another checkout
      # @param refork [String] Pando's setting
      # @param options [Hash] of a Server
      # @return [Server] not started yet
      def self.build(name, bundle:, environment:, base: nil, refork: "off", **options)
        kind, threads = name.split("-")
        options[:environment] = bundle.environment.merge("RACK_ENV" => "production", "RUBY_YJIT_ENABLE" => "1",
                                                         "RAILS_MAX_THREADS" => nil, **environment)
        return Puma.new(threads: Integer(threads), bundle: bundle, **options) if kind == "puma"
        return Pando.new(threads: nil, root: base, refork: refork, **options) if threads == "base"

        Pando.new(threads: threads, refork: refork, **options)
      end

      # @return [String] for a row of a report
      def self.label(name) = name.sub("base", "before").sub("pando-", "Pando, ").sub("puma-", "Puma, ")
    end
  end
end
