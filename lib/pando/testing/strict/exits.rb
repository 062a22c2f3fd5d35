# frozen_string_literal: true

require "pando/fork_safety/file_time"

module Pando
  module Testing
    class Strict
      # Tells a twin's own files from those of other processes, by their times: the twin makes files in its turn and
      # when it leaves, and in between only the heir does. Made in the forking process before the fork, and used in the
      # twin.
      class Turn
        def initialize
          @born = ForkSafety::FileTime.tick
        end

        # Ends the turn.
        def over = @over = ForkSafety::FileTime.tick

        # Ends the heir's turn.
        def leave = @left = ForkSafety::FileTime.tick

        # @return [Boolean] true also if the file system does not record when a file was made
        # @raise [SystemCallError] there is no such file
        def foreign?(path)
          written = ForkSafety::FileTime.written(path)
          made = ForkSafety::FileTime.birth(path)
          made.nil? || made < @born || heirs?(made) || heirs?(written)
        end

        private

        def heirs?(time) = time >= @over && time < @left
      end

      # The app's at_exit blocks. A twin runs them, as a worker does when it leaves. The blocks of the suite and of test
      # libraries belong to the run as a whole.
      module Exits
        # Prepended to Kernel.
        module Hook
          private

          def at_exit(&block)
            Exits.register(block, caller_locations(1, 1).first) if block
            super
          end
        end

        # Prepended to File and Dir in a twin that leaves.
        module Deletions
          %i[unlink delete rmdir].each do |name|
            define_method(name) do |*paths|
              paths.each { |path| Exits.note(path) }
              super(*paths)
            end
          end
        end

        @handlers = []
        @deleted = []

        class << self
          def install
            Kernel.prepend(Hook)
            Kernel.singleton_class.prepend(Hook)
          end

          def register(block, place)
            @handlers << [block, place] unless Testing.settings.suite?(place.absolute_path || place.path)
          end

          # @param turn [Turn] of this process, which is over
          # @return [Array<(String, String)>] paths of other processes' files, with the block's "file:line"
          def run(turn)
            @turn = turn
            @turn.leave
            [File, Dir].each { |one| one.singleton_class.prepend(Deletions) }
            @handlers.reverse_each do |block, place|
              @place = "#{place.absolute_path || place.path}:#{place.lineno}"
              call(block)
            end
            @deleted
          end

          def note(path)
            path = File.expand_path(path)
            @deleted << [path, @place] if @turn.foreign?(path)
          rescue SystemCallError
            nil # there is no such file
          end

          private

          # As in Ruby, the other blocks run even if one raises or ends the process.
          def call(block)
            block.call
          rescue Exception # rubocop:disable Lint/RescueException
            nil
          end
        end
      end
    end
  end
end
