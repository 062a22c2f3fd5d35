# frozen_string_literal: true

require "pando/errors"
require "pando/events"
require "pando/sys"

module Pando
  module Swarm
    # The runners that come with Pando: adapters to job libraries. Only molds load them. `load(kind)` of each class
    # loads the library and the jobs in the mold, and raises a BootError if one is missing. Each node makes an object of
    # the class and calls it on its main thread, which must not wait for a broker that is down; docs/swarm/custom.md
    # describes the methods.
    #
    # @api private
    module Runners
      # @param name [Symbol] one of Config::NodeLine::RUNNERS
      def self.load(name)
        require "pando/swarm/runners/#{name}"
        const_get(name.name.split("_").map(&:capitalize).join)
      end

      # Loads the gem that a runner needs, or says that it is missing.
      # @param feature [String] the file to require
      def self.require_gem(feature, gem)
        require feature
      rescue LoadError => e
        raise unless e.path == feature

        raise BootError, "node :#{gem.tr("-", "_")} needs the gem #{gem}: add it to the Gemfile (bundle add #{gem})"
      end
    end

    # The files of `require:` in a `node` line. A mold loads them; `--check` looks for them.
    #
    # @api private
    module RequiredFiles
      # The file that loads a Rails app, relative to its folder.
      RAILS = "config/environment.rb"

      class << self
        # @return [Array<String>] files; a folder is taken for that of a Rails app
        def of(kind) = kind.files.map { |file| File.directory?(file) ? File.join(file, RAILS) : file }

        def load(kind) = of(kind).each { |file| load_file(kind, file) }

        # The first file may change the load path, so later files are checked only if their paths are absolute.
        # @param directory [String] that the server will run in
        # @return [String, nil] what is wrong
        def trouble(kind, directory)
          name = of(kind).find.with_index { |file, index| (index.zero? || path?(file)) && !found?(file) }
          complaint(kind, name, directory) if name
        end

        private

        def load_file(kind, file)
          require file
        rescue LoadError => e
          raise unless e.path == file

          raise BootError, complaint(kind, file, Dir.pwd), cause: nil
        end

        def path?(file) = File.absolute_path?(file)

        def found?(file)
          return true if $LOAD_PATH.resolve_feature_path(file)

          !path?(file) && defined?(Gem) && Gem::Specification.find_by_path(file)
        end

        def complaint(kind, file, directory)
          return "#{kind.source}: #{title(kind)} require: there is no file #{file}" if path?(file)

          near = File.file?(File.join(directory, file)) || File.file?(File.join(directory, "#{file}.rb"))
          hint = near ? ". It is in the directory of the server: did you mean \"./#{file}\"?" : ""
          "#{kind.source}: #{title(kind)} require: #{file} is not in the load path#{hint}"
        end

        def title(kind) = "node :#{kind.runner || kind.name}"
      end
    end

    # Emits one event when a node loses its broker and one when it reaches it again, and says how long to wait until the
    # next try. Owned by the object that keeps the connection, in a node.
    #
    # @api private
    class BrokerWatch
      FIRST_PAUSE = 0.25 # seconds
      LONGEST_PAUSE = 5.0

      def initialize(node)
        @node = node
        @pause = FIRST_PAUSE
      end

      # A try to reach the broker has failed.
      # @return [Float] seconds until the next try
      def lost(error)
        tell("lost", reason: "#{error.message} (#{error.class})") unless @since
        @since ||= Sys.now
        pause = @pause
        @pause = [@pause * 2, LONGEST_PAUSE].min
        pause
      end

      # A try has succeeded.
      # @return [Boolean] whether the broker had been lost
      def found
        return false unless @since

        tell("found", seconds: (Sys.now - @since).round(1))
        @since = nil
        @pause = FIRST_PAUSE
        true
      end

      private

      def tell(what, **more)
        Events.emit("broker.#{what}", node: @node.kind, slot: @node.number, pid: Process.pid, **more)
      end
    end

    # The connections of Active Record's that a node needs: for its threads that run jobs, and at least as many as its
    # jobs can work with. `database` is the name of the only database that this applies to, or nil.
    #
    # @api private
    ConnectionNeed = Struct.new(:database, :threads, :least, :wanted)

    # The outcome of the start of a thread. The starting thread waits for it; the new thread sets it once.
    #
    # Made by a part of a runner that connects in a thread of its own, in a node.
    #
    # @api private
    class StartSignal
      def initialize
        @queue = Thread::Queue.new
      end

      # Returns when the start has succeeded.
      # @raise [Exception] the error that the thread met instead
      def wait
        error = @queue.pop
        raise error if error
      end

      # @param error [Exception, nil] nil: success. Later calls have no effect
      def set(error = nil)
        return if set?

        @queue.push(error)
        @queue.close
      end

      def set? = @queue.closed?
    end
  end
end
