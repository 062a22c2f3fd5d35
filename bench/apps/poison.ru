# frozen_string_literal: true

# Waits a little, as for a database; some paths end the worker.
run(lambda do |env|
  case env["PATH_INFO"]
  when "/exit" then exit!(1)
  when %r{\A/kill/([A-Z]+)} then Process.kill(Regexp.last_match(1), Process.pid) && sleep
  end
  sleep 0.01
  [200, { "content-type" => "text/plain" }, ["fine\n"]]
end)
