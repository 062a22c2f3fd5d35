# frozen_string_literal: true

require "fcntl"
require "pando/doctor/subject/recorder"

module Pando
  module Doctor
    module Subject
      # Finds the line behind what no Ruby object stands for: threads and descriptors that C code
      # makes. Looks after each call of a method written in C whether there is one more. That is
      # slow, so the doctor stages the application a second time for it, and only when there is
      # something to be found.
      #
      # @api private
      class NativeTrace
        TASKS = "/proc/self/task"

        def initialize(wire)
          @wire = wire
          @probe = File.open(File::NULL)
          @known = tasks
          @open = descriptors
          @free = next_free
        end

        # @return [nil]
        def start
          TracePoint.new(:c_return) { |point| look(point) }.enable
          nil
        end

        private

        def look(point)
          # A number of links is one call; the names are read only when it has changed.
          links = File.stat(TASKS).nlink
          note_tasks(point) if links != @links
          @links = links
          free = next_free
          note_descriptors(point) if free != @free
          @free = next_free
        end

        def note_tasks(point)
          now = tasks
          ruby = Thread.list.map(&:native_thread_id)
          (now - @known - ruby).each do |task|
            @wire.tell(origin: :thread, comm: comm(task), location: place(point))
          end
          @known = now
        end

        def note_descriptors(point)
          now = descriptors
          now.each do |number, link|
            next if @open[number] == link

            @wire.tell(origin: :descriptor, link: link.sub(/\d+/, ""), number: number, location: place(point))
          end
          @open = now
        end

        def place(point)
          Recorder.place(caller_locations(3)) || "#{point.path}:#{point.lineno}"
        end

        def tasks = Dir.children(TASKS).map(&:to_i)
        def comm(task) = File.read("#{TASKS}/#{task}/comm").chomp

        # The smallest number that is free tells whether one was taken or given back.
        def next_free
          number = @probe.fcntl(Fcntl::F_DUPFD, 0)
          Sys.close_fd(number)
          number
        end

        def descriptors
          Dir.children("/proc/self/fd").to_h do |number|
            [number.to_i, File.readlink("/proc/self/fd/#{number}")]
          rescue Errno::ENOENT
            [number.to_i, nil]
          end.compact
        end
      end
    end
  end
end
