# frozen_string_literal: true

# Shows which process answers. Start it, send requests, and watch the generation grow:
#
#   bin/pando examples/hello.ru
#   for i in $(seq 500); do curl -s http://127.0.0.1:8080/; done

# A worker's title names its slot and generation; `ps` shows the same.
who = -> { File.read("/proc/self/cmdline").delete("\0").strip }

run(lambda do |env|
  body = "Hello from #{who.call} (pid #{Process.pid}): #{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}\n"
  [200, { "content-type" => "text/plain" }, [body]]
end)
