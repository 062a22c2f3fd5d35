# frozen_string_literal: true

require "support/lab/servers"
require "support/packages"

module Bench
  module Lab
    # What one run measures: an app on a server, with an allocator, with or without a JIT, over how many requests of
    # each worker, for the n-th time.
    Variant = Struct.new(:app, :server, :allocator, :yjit, :round, :tag, :each_serves, keyword_init: true) do
      # @return [String] names its file
      def id
        name = "#{server}#{"@#{tag}" if tag && pando?}"
        [app, name, allocator, yjit ? "yjit" : "plain", each_serves, round].join("-")
      end

      def label = "#{Servers.label(server)}#{" (#{tag})" if tag && pando?}"
      def pando? = server.start_with?("pando")

      # @return [Boolean] whether they differ in nothing but the server
      def rivals?(other) = [app, allocator, yjit, round] == [other.app, other.allocator, other.yjit, other.round]

      # As the server comes, or with jemalloc in all of its processes.
      def environment
        { "LD_PRELOAD" => allocator == "jemalloc" ? Jemalloc.path : nil, "RUBY_YJIT_ENABLE" => yjit ? "1" : nil }
      end

      # @param options [Options]
      def pando(options) = { root: options.pando_root, settings: options.settings }
    end

    # The library, installed when it is first asked for.
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
