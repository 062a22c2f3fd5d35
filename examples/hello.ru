# frozen_string_literal: true

# Shows which process answers, and what it has from the one that it was forked from. Start it, send requests, and watch
# the generation grow:
#
#   bin/pando -e production examples/hello.ru
#   for i in $(seq 500); do curl -s http://127.0.0.1:8080/; done

# What an application comes to know while it serves. Here: 40 pages, each written when it is asked for the first time,
# and kept. After a refork all workers know what one of them has written, and it is in memory once.
class Library
  PAGES = 40
  LINES = 4000

  def initialize
    @pages = {}
    @written = Hash.new(0) # pid => pages
    @asked = 0
  end

  # @return [String]
  def read
    number = (@asked += 1) % PAGES
    @pages[number] ||= write(number)
    "it knows #{@pages.size} pages and wrote #{@written[Process.pid]} of them itself"
  end

  private

  def write(number)
    @written[Process.pid] += 1
    Array.new(LINES) { |line| "page #{number}, line #{line}, as long as lines are" }
  end
end

library = Library.new
# A worker's title names its slot and generation; `ps` shows the same.
who = -> { File.read("/proc/self/cmdline").delete("\0").strip }

run(lambda do |env|
  body = "Hello from #{who.call} (pid #{Process.pid}): #{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}, #{library.read}\n"
  [200, { "content-type" => "text/plain" }, [body]]
end)
