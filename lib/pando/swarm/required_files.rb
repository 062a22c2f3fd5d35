# frozen_string_literal: true

require "pando/errors"

module Pando
  module Swarm
    # What `require:` of a `node` line names. Loaded in a mold, looked for by `--check`.
    #
    # @api private
    module RequiredFiles
      # What loads a Rails application, in its folder.
      RAILS = "config/environment.rb"

      class << self
        # @param kind [Kind]
        # @return [Array<String>] a folder is that of a Rails application
        def of(kind) = kind.files.map { |file| File.directory?(file) ? File.join(file, RAILS) : file }

        # @param kind [Kind]
        # @raise [BootError] one is not there
        def load(kind)
          of(kind).each { |file| load_file(kind, file) }
        end

        # Later ones than the first may be found by what the first does to the load path.
        #
        # @param kind [Kind] @param directory [String] where the server is to run
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
