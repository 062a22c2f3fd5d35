# frozen_string_literal: true

module Pando
  class Server
    # How this server was started: the program and the folders of code that the command line named, links and all.
    # The monitor that serves knows neither, for it has executed itself without RubyGems (see ReexecWithoutGems); an upgrade
    # starts the same program again, which may lead to another Pando by now.
    #
    # @api private
    class Origin
      # In the environment of the image without gems.
      PROGRAM = "PANDO_PROGRAM"
      LIBRARIES = "PANDO_LIBRARIES"

      class << self
        # @return [Origin] of this process, once it has been noted
        attr_reader :noted

        # At the beginning: while we are where we were started.
        # @param folder [String] as the user sees it
        def note(folder, environment = ENV)
          program, libraries = [PROGRAM, LIBRARIES].map { |name| environment.delete(name) }
          @noted = new(program || File.expand_path($PROGRAM_NAME, folder), libraries&.split(":") || own_libraries)
        end

        private

        # RubyGems and Bundler find the code of a gem by themselves, and then that of the right version.
        def own_libraries
          here = File.expand_path("../..", __dir__)
          by_gem = defined?(Gem) ? Gem.loaded_specs["pando"]&.full_require_paths.to_a : []
          return [] if by_gem.any? { |folder| File.identical?(folder, here) }

          $LOAD_PATH.map(&:to_s).select { |folder| File.identical?(folder, here) }
        end
      end

      # @return [String]
      attr_reader :program
      # @return [Array<String>]
      attr_reader :libraries

      def initialize(program, libraries)
        @program = program
        @libraries = libraries
      end

      # @return [Hash{String => String}]
      def environment = { PROGRAM => program, LIBRARIES => libraries.join(":") }
    end
  end
end
