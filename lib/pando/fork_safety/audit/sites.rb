# frozen_string_literal: true

require "rbconfig"
require "socket"
require "pando/native"

module Pando
  module ForkSafety
    module Audit
      # Records where the IO objects of this process are made. ObjectSpace.trace_object_allocations does the
      # same, but slows down every allocation. This class costs time only when an IO is made.
      module Sites
        # Methods that make an IO without calling its `initialize`.
        MAKERS = %i[for_fd popen pair socketpair accept accept_nonblock sysaccept].freeze
        CLASSES = [IO, File, BasicSocket, Socket, TCPSocket, TCPServer, UNIXSocket, UNIXServer, UDPSocket].freeze
        DEPTH = 40
        # Lines of the standard library and of gems tell only how an IO was made. The app's own line tells where.
        LIBRARY = RbConfig::CONFIG.values_at("rubylibdir", "sitelibdir", "vendorlibdir").compact
                                  .map { |path| "#{path}/".b }.push("<internal:").freeze
        GEM = %r{/gems/[^/]+-\d[^/]*/|/bundler/gems/}
        OURS = "#{File.expand_path("../..", __dir__)}/".b.freeze
        # Kept with the object: a map of weak references would not keep the text alive.
        NOTE = :@pando_made_at
        private_constant :MAKERS, :CLASSES, :DEPTH, :LIBRARY, :GEM, :OURS, :NOTE

        class << self
          # Traces from now on, in this process and its children. A prepended module cannot be removed again.
          def trace
            return if @installed

            @installed = true
            CLASSES.each do |one|
              watch(one.singleton_class)
              watch(one)
              one.prepend(Born) if one.private_method_defined?(:initialize, false)
            end
            nil
          end

          def of(io) = io.instance_variable_get(NOTE)

          # @return [String, nil] its first line that belongs neither to a library nor to Pando
          def application_line(backtrace)
            backtrace&.find { |line| application?(line) && !line.b.start_with?(OURS) }
          end

          # @param frames [Array<Thread::Backtrace::Location>]
          # @return [String, nil] "file:line" of the application's first line. If there is none, of the first outside of
          #   Ruby, or else outside of Pando
          def line(frames)
            frames = frames.reject { |frame| frame.path.b.start_with?(OURS) }
            frame = frames.find { |one| application?(one.path) } || frames.find { |one| !standard?(one.path) } ||
                    frames.first
            # A path's bytes may not be valid in the locale.
            frame && "#{frame.path}:#{frame.lineno}".force_encoding(Encoding::UTF_8).scrub
          end

          # Whether it belongs to Ruby itself.
          def standard?(path) = path.b.start_with?(*LIBRARY)

          def note(made)
            case made
            when IO then mark(made)
            when Array then made.grep(IO) { |io| mark(io) }
            end
          end

          private

          def watch(one)
            names = MAKERS.select { |name| one.method_defined?(name, false) }
            one.prepend(maker(names)) if names.any?
          end

          # Records what the methods of these names return.
          def maker(names)
            Module.new do
              names.each do |name|
                define_method(name) do |*arguments, **options, &block|
                  super(*arguments, **options, &block).tap { |made| Sites.note(made) }
                end
              end
            end
          end

          # A two-way IO.popen has a second IO inside.
          def mark(io)
            made_at = nil
            [io, Sys.write_half(io)].each do |one|
              next if one.frozen? || one.instance_variable_defined?(NOTE)

              one.instance_variable_set(NOTE, made_at ||= line(caller_locations(4, DEPTH)))
            end
          end

          def application?(path) = !standard?(path) && !GEM.match?(path.b)
        end

        # Records an IO once it is set up.
        module Born
          def initialize(...)
            super
            Sites.note(self)
          end
        end
        private_constant :Born
      end
    end
  end
end
