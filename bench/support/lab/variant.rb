# frozen_string_literal: true

require "support/lab/servers"
require "support/lab/setup"
require "support/packages"

module Bench
  module Lab
    # One run's subject: an app on a server, with an allocator, with or without a JIT, the requests per worker, the
    # number of the round, and its other settings; for Pando, also its tag and how many seconds of production one second
    # of the lab stands for.
    Variant = Struct.new(:app, :server, :allocator, :yjit, :round, :tag, :time_scale, :each_serves, :setup,
                         keyword_init: true) do
      def initialize(server:, tag: nil, time_scale: 1, **others)
        ours = server.start_with?("pando")
        super(server: server, tag: ours ? tag : nil, time_scale: ours ? time_scale : 1, **others)
      end

      # @return [String] names its file
      def id
        name = "#{server}#{"@#{tag}" if tag}#{"x#{time_scale}" if scaled?}"
        [app, name, allocator, yjit ? "yjit" : "plain", "ruby#{RUBY_VERSION}", each_serves, round, *setup.digest]
          .join("-")
      end

      def label
        words = tag ? " (#{tag})" : setup.words.map { |word| ", #{word}" }.join
        "#{Servers.label(server)}#{words}#{", time scale #{time_scale}" if scaled?}"
      end

      # @return [Hash] what a result says of it
      def record = { **to_h, **setup.to_h, label: label }.except(:setup)

      def scaled? = time_scale != 1

      # Each round has other requests. The workers of a generation compile the same methods soon after the fork. Without
      # this it would be the same methods in each round.
      #
      # @return [Integer] the seed of its traffic
      def traffic_seed = setup.seed + round - 1

      # @return [Boolean] whether they differ only in the server and its allocator
      def rivals?(other) = [app, yjit, round] == [other.app, other.yjit, other.round]

      # The server's default allocator, or jemalloc in all of its processes.
      def environment
        { "LD_PRELOAD" => allocator == "jemalloc" ? Jemalloc.path : nil, "RUBY_YJIT_ENABLE" => yjit ? "1" : nil,
          "PANDO_TIME_SCALE" => scaled? ? time_scale.to_s : nil }
      end

      # @param options [Options]
      def pando(options) = { root: options.pando_root, settings: options.settings }
    end

    # The jemalloc library, installed on first use.
    module Jemalloc
      PLACES = ["/usr/lib/*/libjemalloc.so.2", "/usr/{,local/}lib/libjemalloc.so.2"].freeze

      # @raise [Packages::Missing]
      def self.path
        Dir[*PLACES].first || (Packages.install(["libjemalloc2"]) && Dir[*PLACES].first) ||
          raise(Packages::Missing, "no libjemalloc.so.2 (libjemalloc2)")
      end
    end
  end
end
