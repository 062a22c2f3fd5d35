# frozen_string_literal: true

require "support/lab/servers"

module Bench
  module Lab
    # What one run measures: an app on a server, with an allocator, with or without a JIT, for the n-th time.
    Variant = Struct.new(:app, :server, :allocator, :yjit, :round, :tag, keyword_init: true) do
      JEMALLOC = Dir["/usr/lib/*/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2", "/usr/local/lib/libjemalloc.so.2"].first

      # @return [String] names its file
      def id = [app, "#{server}#{"@#{tag}" if tag && pando?}", allocator, yjit ? "yjit" : "plain", round].join("-")

      def label = "#{Servers.label(server)}#{" (#{tag})" if tag && pando?}"
      def pando? = server.start_with?("pando")

      # As the server comes, or with jemalloc in all of its processes.
      def environment
        { "LD_PRELOAD" => allocator == "jemalloc" ? JEMALLOC : nil, "RUBY_YJIT_ENABLE" => yjit ? "1" : nil }
      end

      # @param options [Options]
      def pando(options) = { root: options.pando_root, settings: options.settings }
    end
  end
end
