# frozen_string_literal: true

module Pando
  module ForkSafety
    module Audit
      # The names of native libraries' threads, and the files of these libraries.
      #
      # @api private
      module NativeLibraries
        # `excuse`: why it is harmless that a child lacks its threads.
        Known = Struct.new(:name, :comm, :object, :excuse)
        PREPARED = "it prepares itself for a fork (pthread_atfork)"
        private_constant :Known, :PREPARED

        TABLE = [
          Known.new("grpc", /\A(?:grpc|default-exec|resolver-exec|timer_manager|event_engine)/, /grpc/),
          Known.new("librdkafka", /\Ardk:/, /rdkafka/),
          Known.new("jemalloc", /\Ajemalloc_bg_thd/, /libjemalloc/, PREPARED),
          Known.new("libvips", /\A(?:libvips|vips|worker|sink_|background|wbuffer)/, /libvips/),
          Known.new("glib", /\A(?:gmain|gdbus|pool-|dconf)/, /libg(?:lib|io)-/),
          Known.new("libuv", /\Alibuv-/, /libuv/),
          Known.new("OpenBLAS", /\Aopenblas/i, /openblas/, PREPARED),
          Known.new("OpenMP", /\Aomp/i, /lib(?:gomp|omp|iomp5)/),
          Known.new("libcurl", /\Acurl/i, /libcurl/),
          Known.new("V8", /\A(?:V8 |libv8|node)/, /(?:mini_racer|libv8|libnode)/),
          Known.new("ZeroMQ", /\AZMQbg/, /libzmq/),
          Known.new("Rust's tokio", /\Atokio/, nil),
          Known.new("datadog", /\Add(?:prof|trace|_)/, /(?:ddtrace|datadog|libdatadog)/)
        ].each(&:freeze).freeze

        # The file is better evidence than a name.
        # @param comm [String] @param object [String, nil]
        # @return [Known, nil]
        def self.find(comm, object)
          file = File.basename(object) if object
          TABLE.find { |known| file && known.object&.match?(file) } || (named(comm) unless file)
        end

        def self.named(comm) = TABLE.find { |known| known.comm.match?(comm) }
        private_class_method :named
      end
    end
  end
end
