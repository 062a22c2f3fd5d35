# frozen_string_literal: true

require "pando/errors"

module Pando
  module Swarm
    # The runners that come with Pando: adapters to job libraries. Only molds load them. `load(kind)` of each class
    # loads the library and the jobs in the mold, and raises a BootError if one is missing. Each node makes an object of
    # the class; docs/swarm/custom.md describes its methods.
    #
    # @api private
    module Runners
      # @param name [Symbol] one of Config::NodeLine::RUNNERS
      # @return [Class] the runner's class, loaded
      # @raise [BootError] the library is missing
      def self.load(name)
        require "pando/swarm/runners/#{name}"
        const_get(name.name.split("_").map(&:capitalize).join)
      end

      # Loads the gem that a runner needs, or says that it is missing.
      #
      # @param feature [String] the file to require @param gem [String] the gem that has it
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

        # @raise [BootError] a file is missing
        def load(kind) = of(kind).each { |file| load_file(kind, file) }

        # The first file may change the load path, so later files are checked only if their paths are absolute.
        #
        # @param kind [Config::NodeKind] @param directory [String] the directory that the server will run in
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
  end
end
