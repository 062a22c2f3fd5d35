# frozen_string_literal: true

Pando::ForkSafety::Libraries::Known.describe "appsignal" do
  handled since: "0.5.3",
          note: "Its extension is started in each child, as its own integrations do it.",
          source: "https://github.com/appsignal/appsignal-ruby/blob/main/lib/appsignal/integrations/unicorn.rb"
  in_child { Appsignal.forked }
end
