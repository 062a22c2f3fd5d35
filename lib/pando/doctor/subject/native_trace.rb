# frozen_string_literal: true

require "fcntl"
require "pando/doctor/subject/instruments"

module Pando
  module Doctor
    module Subject
      # Finds the lines that make threads and descriptors in C code, for which there is no Ruby object: after each call
      # of a C method it looks whether there is a new one. That is slow, so the doctor starts a second stage for it, and
      # only if the first one has found such a thing.
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
          TracePoint.new(:c_return) { |point| check(point) }.enable
          nil
        end

        private

        def check(point)
          # The number of links takes one call; the names are read only when it has changed.
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
          Instruments.place(caller_locations(3)) || "#{point.path}:#{point.lineno}"
        end

        def tasks = Dir.children(TASKS).map(&:to_i)
        def comm(task) = File.read("#{TASKS}/#{task}/comm").chomp

        # The smallest free number shows whether a descriptor was opened or closed.
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
